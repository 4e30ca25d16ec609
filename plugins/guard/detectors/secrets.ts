/** Detectors of credentials with a known shape. */
import type { Detector } from './persons.ts';

const edge = String.raw`(?<![A-Za-z0-9_])`;
const shapes = 'https://github.com/gitleaks/gitleaks/blob/master/config/gitleaks.toml';

/** Credentials of known shapes, by the names that options use. */
export const secretDetectors = {
  'private-key': {
    label: 'PRIVATE_KEY',
    // The line breaks may be escaped. A key without its last line is one, too.
    pattern: String.raw`-----BEGIN (?:[A-Z]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----(?:[\s\\nr]{0,8}(?:Proc-Type|DEK-Info|Version|Comment): ?[^\r\n\\]{0,80}){0,4}[A-Za-z0-9+/=\s\\]{32,}(?:-----END (?:[A-Z]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----)?`,
    source: 'RFC 7468, RFC 1421, RFC 9580',
  },
  'aws-key': {
    label: 'AWS_KEY',
    pattern: String.raw`${edge}(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}(?![A-Za-z0-9])|(?:(?:aws_)?secret_?access_?key|aws_?secret_?key)["']?\s{0,3}[=:]\s{0,3}["']?[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+])`,
    ignoreCase: true,
    source: 'https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html',
  },
  'github-token': {
    label: 'GITHUB_TOKEN',
    pattern: `${edge}(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,})`,
    source:
      'https://github.blog/engineering/platform-security/behind-githubs-new-authentication-token-formats/',
  },
  'slack-token': {
    label: 'SLACK_TOKEN',
    pattern: `${edge}(?:xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,})|https://hooks\\.slack\\.com/(?:services|workflows)/[A-Za-z0-9+/]{20,}`,
    source: 'https://docs.slack.dev/authentication/tokens',
  },
  'stripe-key': {
    label: 'STRIPE_KEY',
    pattern: `${edge}(?:(?:sk|rk)_(?:live|test)_|whsec_)[A-Za-z0-9+/=]{10,}`,
    source: 'https://docs.stripe.com/keys',
  },
  'anthropic-key': {
    label: 'ANTHROPIC_KEY',
    pattern: `${edge}sk-ant-[A-Za-z0-9_-]{20,}`,
    source: shapes,
  },
  'openai-key': {
    label: 'OPENAI_KEY',
    pattern: `${edge}sk-(?:(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{20,}|[A-Za-z0-9]{32,})`,
    source: shapes,
  },
  'google-key': {
    label: 'GOOGLE_KEY',
    pattern: `${edge}(?:AIza[A-Za-z0-9_-]{35}|ya29\\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,})`,
    source: shapes,
  },
  jwt: {
    label: 'JWT',
    pattern: String.raw`(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`,
    source: 'RFC 7519: two JSON objects in base64url, and a signature',
  },
} satisfies Readonly<Record<string, Detector>>;

/** Detectors of credentials with a known shape. */
import type { Detector } from './persons.ts';

const edge = String.raw`(?<![A-Za-z0-9_])`;
/** Rules of gitleaks. Where they count characters exactly, shorter ones count here, too, because providers change lengths. */
const rules = 'https://github.com/gitleaks/gitleaks, commit b58d3f10, cmd/generate/config/rules/';

/** Credentials of known shapes, by the names that options use. */
export const secretDetectors = {
  'private-key': {
    label: 'PRIVATE_KEY',
    // The line breaks may be escaped. A key without its last line is one, too.
    pattern: String.raw`-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----(?:[\s\\nr]{0,8}(?:Proc-Type|DEK-Info|Version|Comment): ?[^\r\n\\]{0,80}){0,4}[A-Za-z0-9+/=\s\\]{32,}(?:-----END (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----)?`,
    source: `RFC 7468, RFC 1421, RFC 9580; ${rules}privatekey.go`,
  },
  'aws-key': {
    label: 'AWS_KEY',
    pattern: String.raw`${edge}(?:(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}|ABSK[A-Za-z0-9+/]{40,269}={0,2}|bedrock-api-key-[A-Za-z0-9+/=]{20,})(?![A-Za-z0-9])|(?:(?:aws_)?secret_?access_?key|aws_?secret_?key)["']?\s{0,3}[=:]\s{0,3}["']?[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+])`,
    ignoreCase: true,
    source: `https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html; ${rules}aws.go`,
  },
  'github-token': {
    label: 'GITHUB_TOKEN',
    pattern: `${edge}(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,})`,
    source: `https://github.blog/engineering/platform-security/behind-githubs-new-authentication-token-formats/; ${rules}github.go`,
  },
  'slack-token': {
    label: 'SLACK_TOKEN',
    pattern: `${edge}(?:xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,})|(?:https?://)?hooks\\.slack\\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/]{20,}`,
    source: `https://docs.slack.dev/authentication/tokens; ${rules}slack.go`,
  },
  'stripe-key': {
    label: 'STRIPE_KEY',
    pattern: `${edge}(?:(?:sk|rk)_(?:live|test|prod)_|whsec_)[A-Za-z0-9+/=]{10,}`,
    source: `https://docs.stripe.com/keys; ${rules}stripe.go`,
  },
  'anthropic-key': {
    label: 'ANTHROPIC_KEY',
    pattern: `${edge}sk-ant-[A-Za-z0-9_-]{20,}`,
    source: `${rules}anthropic.go`,
  },
  'openai-key': {
    label: 'OPENAI_KEY',
    pattern: `${edge}sk-(?:(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{20,}|[A-Za-z0-9]{32,})`,
    source: `${rules}openai.go`,
  },
  'google-key': {
    label: 'GOOGLE_KEY',
    pattern: `${edge}(?:AIza[A-Za-z0-9_-]{35}|ya29\\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,})`,
    source: `${rules}gcp.go; https://cloud.google.com/docs/authentication`,
  },
  jwt: {
    label: 'JWT',
    pattern: String.raw`(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`,
    source: `RFC 7519: two JSON objects in base64url, and a signature; ${rules}jwt.go`,
  },
} satisfies Readonly<Record<string, Detector>>;

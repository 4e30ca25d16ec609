/** Recognizes errors of the shared Redis store that need other settings, and says what the operator should change. */
import { certificateProblem } from '../certificate-problem.ts';

/** Error of a shared store that refuses the gateway because of its settings, also at a retry. The message is for the operator. */
export class SharedStoreMistake extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'SharedStoreMistake';
  }

  /** Returns the mistake behind an error of the driver; undefined when the server is only unavailable. */
  static in(error: unknown, source: ErrorSource): SharedStoreMistake | undefined {
    if (error instanceof SharedStoreMistake) return error;
    if (!(error instanceof Error)) return undefined;
    const advice = adviceOn(error, source);
    if (advice === undefined) return undefined;
    const what = source.role === 'sentinel' ? 'Sentinel' : 'Redis';
    return new SharedStoreMistake(`The ${what} at ${source.server} ${advice}`, error);
  }
}

/** The server that returned the error, and its expected role. */
export interface ErrorSource {
  readonly server: string;
  readonly role: 'sentinel' | 'server';
  readonly kind: 'single' | 'sentinel' | 'cluster';
}

/** Returns the end of the message: the meaning of the error, and what to do. */
function adviceOn(error: Error, source: ErrorSource): string | undefined {
  const { message } = error;
  const password =
    source.role === 'sentinel' ? '"shared.sentinelPassword"' : '"shared.url" or "shared.password"';
  if (message.startsWith('WRONGPASS')) return `refuses the user or the password: correct ${password}.`;
  if (message.startsWith('NOAUTH')) return `asks for a password: set ${password}.`;
  if (/AUTH.* called without any password configured/.test(message))
    return `has no password, and the settings give one: remove it from ${password}, or name the user.`;
  if (/^NOPERM|can't run this command|doesn't have permissions/.test(message))
    return `does not give the user the permissions that it needs (${message}): allow the keys sluice:* and the commands that docs/guides/databases.md lists.`;
  if (/DB index/.test(message))
    return 'has no database of this number: correct it at the end of "shared.url".';
  if (message.startsWith('DENIED'))
    return 'is in protected mode: give it a password, and set it in "shared.url".';
  return topologyAdvice(message, source) ?? tlsAdvice(error);
}

function topologyAdvice(message: string, { kind, role }: ErrorSource): string | undefined {
  if (
    kind !== 'cluster' &&
    (message.startsWith('MOVED ') || /SELECT is not allowed in cluster mode/.test(message))
  )
    return 'is a node of a cluster: write redis+cluster:// in "shared.url".';
  if (/cluster support disabled/i.test(message)) return 'is no cluster: write redis:// in "shared.url".';
  if (!/unknown command/i.test(message)) return undefined;
  return role === 'sentinel'
    ? 'is no Sentinel: write redis:// in "shared.url", or the port of a Sentinel.'
    : 'does not know a command that is needed. If it is a Sentinel, write redis+sentinel://HOST/NAME in "shared.url".';
}

/** Codes of Node and OpenSSL for a server that speaks no TLS. */
const badHandshake = /^(?:EPROTO|ERR_SSL_|ERR_OSSL_)/;

function tlsAdvice(error: Error): string | undefined {
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  const problem = certificateProblem(error);
  if (problem !== undefined)
    return `has a certificate that is not accepted (${problem}): give its authority in "shared.tls.ca", or its name in "shared.tls.servername".`;
  if (badHandshake.test(code))
    return `does not agree on TLS (${code}): a server without TLS is written redis:// in "shared.url", and one that asks for certificates needs "shared.tls.cert" and "shared.tls.key".`;
  return undefined;
}

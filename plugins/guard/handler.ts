/** The checks of the configuration at work: on the request before it is sent, and on the response before the client has it. */
import { randomBytes } from 'node:crypto';
import { GatewayError, type Call, type Handler, type PluginTools } from 'sluice';
import { BackgroundChecks } from './background-checks.ts';
import { createCheck, type Check } from './checks.ts';
import type { GuardOptions } from './options.ts';
import { Placeholders } from './placeholders.ts';
import { Reporter } from './reporter.ts';
import { checkRequest } from './request.ts';
import { checkReply } from './response.ts';
import { anyLabel, Scanners } from './scanner.ts';
import { divide, type Session } from './session.ts';
import { textsOfRequest } from './texts/request.ts';

/** Operations whose replies carry texts. */
const answering: ReadonlySet<string> = new Set([
  'chat',
  'transcribe',
  'translate-audio',
  'ocr',
  'generate-image',
  'edit-image',
  'vary-image',
]);

/** Operations without content to check. */
const silent: ReadonlySet<string> = new Set(['list-models', 'state', 'get-video', 'delete-video']);

/** Prepares the checks, and returns the function that handles each call. */
export async function startGuard(
  { checks: entries, uncovered, alerts }: GuardOptions,
  tools: PluginTools,
): Promise<Handler> {
  const checks = entries.map((entry) => createCheck(entry, tools));
  const names = checks.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new Error(`guard: two checks have the name "${twice}". Rename one.`);
  const reporter = new Reporter(tools, alerts);
  const beside = new BackgroundChecks(reporter, tools);
  const scanners = new Scanners(checks);
  const salt = checks.some(({ restore }) => restore) ? await sharedSalt(tools) : undefined;
  const labels = [...new Set(checks.flatMap(labelsOf))];
  compileAll(scanners, checks, labels);

  return async function guard(call, next) {
    const active = checks.filter((check) => check.appliesTo(call));
    if (active.length === 0 || silent.has(call.operation)) return next(call);
    const requestChecks = checksOn('request', active);
    const responseChecks = answering.has(call.operation) ? checksOn('response', active) : [];
    const placeholders = new Placeholders(mayKeepTurns(call) ? salt : undefined);
    const session: Session = { call, scanners, reporter, beside, placeholders, labels };
    const texts =
      call.operation === 'realtime' || requestChecks.length > 0 ? textsOfRequest(call) : { texts: [] };
    if (texts === undefined) {
      if (uncovered === 'refuse') throw cannotLook(call);
      return next(call);
    }
    const { call: checked, pending } =
      'replace' in texts ? await checkRequest(texts, requestChecks, session) : { call, pending: undefined };
    if (responseChecks.length === 0 && !placeholders.canRestore) return answered(next(checked), pending);
    const reply = await answered(next(checked.with({ decoded: true })), pending);
    return checkReply(reply, responseChecks, session);
  };
}

/** Compiles what calls need to which all checks apply. Throws where the patterns are too large together. */
function compileAll(scanners: Scanners, checks: readonly Check[], labels: readonly string[]): void {
  for (const side of ['request', 'response'] as const) {
    const { acting, telling } = divide(checksOn(side, checks));
    if (acting.length > 0) scanners.of(acting);
    if (telling.length > 0) scanners.of(telling);
    if (side === 'response' && labels.length > 0) scanners.of(acting, labels);
  }
}

/** Checks of one side. */
function checksOn(side: 'request' | 'response', checks: readonly Check[]): readonly Check[] {
  return checks.filter(({ on }) => on === 'both' || on === side);
}

/** Returns the reply once nothing speaks against it any more. A refusal ends the call, and with it the provider's work. */
async function answered<Reply>(reply: Promise<Reply>, pending: Promise<void> | undefined): Promise<Reply> {
  if (pending === undefined) return reply;
  reply.catch(() => {});
  await pending;
  return reply;
}

/** Returns true for an API whose providers may store earlier turns, in which other values can have the same numbers. */
function mayKeepTurns({ format }: Call): boolean {
  return format.name === 'responses';
}

/** Returns the labels that may stand in placeholders of a check which restores. */
function labelsOf({ restore, patterns, remote }: Check): readonly string[] {
  if (!restore) return [];
  return remote === undefined ? patterns.map(({ label }) => label) : [anyLabel];
}

function cannotLook({ operation }: Call): GatewayError {
  return new GatewayError(
    'unsupported_content',
    `The checks of this gateway cannot read this kind of request (${operation}).`,
  );
}

/** Placeholders that are made of values need a secret that all processes share, so that nobody finds a value by trying. */
async function sharedSalt({ stores }: PluginTools): Promise<Buffer> {
  await stores.add('guard', 'salt', randomBytes(32).toString('base64'));
  const kept = await stores.namespace<string>('guard').get('salt');
  if (kept === undefined) throw new Error('guard: the secret for placeholders is not in the database.');
  return Buffer.from(kept, 'base64');
}

/** Runs the checks of a request: refuses it, masks values in it, and starts the remote checks that run in parallel to the call. */
import { scheduler } from 'node:timers/promises';
import { GatewayError, type Call } from 'sluice';
import { isRemote, tells, type Check, type RemotelyChecked } from './checks.ts';
import { maskFinds } from './masks.ts';
import type { Scanner } from './scanner.ts';
import type { Span } from './patterns/matcher.ts';
import { replaceSpans } from './patterns/replacer.ts';
import { runCheckInCall, settle, type CheckOutcome } from './remote-run.ts';
import type { JudgedText } from './remote/judge.ts';
import { divide, masking, type Session } from './session.ts';
import type { RequestText } from './texts/chat.ts';
import type { RequestTexts } from './texts/request.ts';

/** A request that passed its checks, and those that still run. */
export interface CheckedRequest {
  readonly call: Call;
  /** Checks that still run; rejects with the refusal. No part of the response may be sent before it resolves. */
  readonly pending: Promise<void> | undefined;
}

/** Number of characters that are scanned before the event loop runs other calls. */
const step = 65_536;

/** Checks a request: what must be masked is masked in the call that it returns. Rejects with the refusal of the call. */
export async function checkRequest(
  found: RequestTexts,
  checks: readonly Check[],
  session: Session,
): Promise<CheckedRequest> {
  const { acting, telling } = divide(checks);
  const remote = checks.filter(isRemote);
  let texts: readonly string[] = found.texts.map(({ text }) => text);
  if (telling.length > 0) await alertLocally(found.texts, telling, session);
  if (checks.some(({ action }) => action === 'mask')) {
    for (const text of texts) session.placeholders.reserve(text);
  }
  if (acting.length > 0) texts = await maskLocally(found.texts, acting, session);
  const judged = found.texts
    .map(({ role }, index): JudgedText => ({ role, text: texts[index] ?? '' }))
    .slice(found.definitions);
  const waited: Promise<CheckOutcome>[] = [];
  const parallel: Promise<void>[] = [];
  const { call, reporter } = session;
  for (const check of remote) {
    const question = { side: 'request', texts: inScope(judged, check), call } as const;
    if (check.action === 'alert' || (check.remote.parallel && tells(check))) {
      session.beside.start(check, question);
      continue;
    }
    const outcome = runCheckInCall(check, question, reporter);
    if (check.remote.parallel) parallel.push(settled(outcome, session));
    else waited.push(outcome);
  }
  const pending = parallel.length === 0 ? undefined : Promise.all(parallel).then(() => {});
  // A refusal that comes before anybody waits for it.
  pending?.catch(() => {});
  const answers = await Promise.all(waited);
  for (const outcome of answers) settle(outcome, 'request', call, reporter);
  const turns = maskFinds(texts.slice(found.definitions), answers, session);
  texts = [...texts.slice(0, found.definitions), ...turns];
  return { call: replaced(found, texts, session), pending };
}

async function settled(running: Promise<CheckOutcome>, { call, reporter }: Session): Promise<void> {
  settle(await running, 'request', call, reporter);
}

function replaced(found: RequestTexts, now: readonly string[], { call }: Session): Call {
  if (found.texts.every(({ text }, index) => text === now[index])) return call;
  const changed = found.replace(now);
  if (changed !== undefined) return changed;
  throw new GatewayError(
    'unsupported_content',
    'This request has text to be masked in a part that cannot be changed, such as a form or a file.',
  );
}

async function alertLocally(
  texts: readonly RequestText[],
  checks: readonly Check[],
  session: Session,
): Promise<void> {
  const scanner = session.scanners.of(checks);
  const scan = new PacedScan(scanner);
  const labels = new Map<Check, Set<string>>();
  for (const { text } of texts)
    for (const span of await scan.spansOf(text)) {
      const finding = scanner.findingOf(span);
      for (const check of finding.checks) {
        const known = labels.get(check) ?? new Set();
        labels.set(check, known.add(finding.label));
      }
    }
  for (const check of checks) {
    const found = labels.get(check);
    if (found !== undefined)
      session.reporter.note(session.call, { check, side: 'request', reasons: [...found] });
  }
}

async function maskLocally(
  texts: readonly RequestText[],
  checks: readonly Check[],
  session: Session,
): Promise<string[]> {
  const scanner = session.scanners.of(checks);
  const scan = new PacedScan(scanner);
  const spans: (readonly Span[])[] = [];
  for (const { text } of texts) spans.push(await scan.spansOf(text));
  const masked = texts.map(({ text }) => text);
  const noted = new Map<Check, Set<string>>();
  // In signed reasoning only values that other texts contain too are masked, because a changed text does not match its signature.
  for (const isSigned of [false, true])
    for (const [index, one] of texts.entries()) {
      const found = spans[index] ?? [];
      if (one.isSigned !== isSigned || found.length === 0) continue;
      masked[index] = replaceSpans(one.text, found, (match, span) => {
        const finding = scanner.findingOf(span);
        const check = masking(finding, 'request', session, one.at);
        if (check === undefined || (isSigned && !session.placeholders.has(finding.label, match)))
          return match;
        noted.set(check, (noted.get(check) ?? new Set()).add(finding.label));
        return session.placeholders.of(finding.label, match, check.restore);
      });
    }
  for (const [check, labels] of noted)
    session.reporter.note(session.call, { check, side: 'request', reasons: [...labels] });
  return masked;
}

/** Scans texts in steps, between which the event loop runs other calls. */
class PacedScan {
  readonly #matcher: Scanner['matcher'];
  #scanned = 0;

  constructor({ matcher }: Scanner) {
    this.#matcher = matcher;
  }

  async spansOf(text: string): Promise<readonly Span[]> {
    const spans: Span[] = [];
    for (let from = 0; from < text.length;) {
      const scan = this.#matcher.scan(text, from, true, from + step);
      for (const span of scan.spans) spans.push(span);
      const until = Math.max(scan.until, from + 1);
      this.#scanned += until - from;
      from = until;
      if (this.#scanned < step) continue;
      this.#scanned = 0;
      // Sequential, because each step needs the result of the one before.
      // oxlint-disable-next-line no-await-in-loop
      await scheduler.yield();
    }
    return spans;
  }
}

/** Texts for a check. */
function inScope(texts: readonly JudgedText[], { remote }: RemotelyChecked): readonly JudgedText[] {
  if (remote.scope === 'all') return texts;
  const last = texts.findLastIndex(({ role }) => role === 'assistant');
  return texts.slice(last + 1);
}

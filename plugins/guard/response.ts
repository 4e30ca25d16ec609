/** Checks a reply, whole or streamed. */
import { concatMap, from, map, tap, toArray, type Observable } from 'rxjs';
import {
  GatewayError,
  observe,
  transformText,
  type GatewayEvent,
  type JsonObject,
  type TextBlockInfo,
  type TextTransformer,
} from 'sluice';
import { isRemote, tells, type Check, type RemotelyChecked } from './checks.ts';
import { JsonText } from './patterns/json-text.ts';
import { Replacer } from './patterns/replacer.ts';
import { runCheckInCall, settle } from './remote-run.ts';
import type { JudgedText } from './remote/judge.ts';
import type { Scanner } from './scanner.ts';
import { divide, masking, type Session } from './session.ts';
import { mapCitation } from './texts/chat.ts';
import { mapWords } from './texts/json.ts';

type Reply = Observable<GatewayEvent>;

/** Checks a reply, and restores what was masked in its request. Holds back no more than its checks need. */
export function checkReply(reply: Reply, checks: readonly Check[], session: Session): Reply {
  const remote = checks.filter(isRemote);
  const refusing = remote.filter((check) => !tells(check));
  const beside = remote.filter(tells);
  let checked = reply;
  if (beside.length > 0) checked = checked.pipe(observe(startChecksBeside(beside, session)));
  if (refusing.length > 0) checked = holdWhole(checked, refusing, session);
  const { acting, telling } = divide(checks);
  const restores = session.placeholders.canRestore;
  if (acting.length === 0 && telling.length === 0 && !restores) return checked;
  const acts = acting.length > 0 || restores;
  const texts = new ReplyTexts(
    session,
    acts ? session.scanners.of(acting, restores ? session.labels : []) : undefined,
    telling.length > 0 ? session.scanners.of(telling) : undefined,
  );
  return checked.pipe(
    map((event) => texts.whole(event)),
    transformText((info) => texts.transformer(info)),
  );
}

/** Changes the texts of one reply. */
class ReplyTexts {
  readonly #session: Session;
  readonly #acting: Scanner | undefined;
  readonly #telling: Scanner | undefined;
  readonly #reported = new Set<Check>();

  constructor(session: Session, acting: Scanner | undefined, telling: Scanner | undefined) {
    this.#session = session;
    this.#acting = acting;
    this.#telling = telling;
  }

  transformer({ kind, custom }: TextBlockInfo): TextTransformer {
    return kind === 'arguments' && custom !== true ? new JsonText(() => this.#text()) : this.#text();
  }

  /** Changes an event that carries whole texts. */
  whole(event: GatewayEvent): GatewayEvent {
    const change = (text: string): string => {
      const transformer = this.#text();
      return transformer.push(text) + transformer.end();
    };
    switch (event.type) {
      case 'citation':
        return { ...event, citation: mapCitation(event.citation, change) };
      case 'opaque':
        return { ...event, value: mapWords(event.value, '', change) as JsonObject };
      case 'result':
        return { ...event, value: mapWords(event.value as JsonObject, '', change) as JsonObject };
      case 'frames':
      case 'bytes':
        if (event.type === 'bytes' && this.#session.call.operation !== 'chat') return event;
        // A later plugin returned bytes although events were requested.
        throw new GatewayError('internal_error', 'The response could not be checked.');
      default:
        return event;
    }
  }

  #text(): TextTransformer {
    const acting = this.#acting;
    const telling = this.#telling;
    const replacer =
      acting === undefined
        ? undefined
        : new Replacer(acting.matcher, (match, span) => this.#replaced(match, acting, span.patterns));
    const teller =
      telling === undefined
        ? undefined
        : new Replacer(telling.matcher, (match, span) => this.#report(match, telling, span.patterns));
    return {
      push: (text) => {
        teller?.push(text);
        return replacer === undefined ? text : replacer.push(text);
      },
      end: () => {
        teller?.end();
        return replacer?.end() ?? '';
      },
    };
  }

  #replaced(match: string, scanner: Scanner, patterns: readonly number[]): string {
    const { placeholders } = this.#session;
    const finding = scanner.findingOf({ start: 0, end: 0, patterns });
    if (finding.isPlaceholder) return placeholders.restored(match) ?? match;
    const check = masking(finding, 'response', this.#session);
    if (check === undefined) return match;
    this.#note(check, finding.label);
    return placeholders.of(finding.label, match, false);
  }

  #report(match: string, scanner: Scanner, patterns: readonly number[]): string {
    const finding = scanner.findingOf({ start: 0, end: 0, patterns });
    for (const check of finding.checks) this.#note(check, finding.label);
    return match;
  }

  /** Notes a finding, once for each check of a reply. */
  #note(check: Check, label: string): void {
    if (this.#reported.has(check)) return;
    this.#reported.add(check);
    const { reporter, call } = this.#session;
    reporter.note(call, { check, side: 'response', reasons: [label] });
  }
}

/** Maximum memory of a response that is held back, in characters of its events. */
const maxHeld = 64 * 1024 * 1024;
/** Approximate size of an event besides its texts, in characters. */
const eventSize = 100;

/** Texts of a reply, block by block. */
class Gathered {
  readonly #blocks = new Map<string, { text: string; readonly isAnswer: boolean }>();
  #length = 0;
  #held = 0;

  /** Characters of its texts. */
  get length(): number {
    return this.#length;
  }

  /** True where its events take more memory than may be held. */
  get isTooLarge(): boolean {
    return this.#held > maxHeld;
  }

  take(event: GatewayEvent): void {
    this.#held += eventSize + sizeOf(event);
    // Data of media counts as text.
    this.#length += event.type === 'media-delta' ? (event.data?.length ?? 0) : 0;
    this.#length += event.type === 'partial-image' ? event.data.length : 0;
    if (event.type === 'text-delta') this.#add(`text ${event.block}`, event.text, true);
    else if (event.type === 'reasoning-delta' || event.type === 'refusal-delta')
      this.#add(`${event.type} ${event.block}`, event.text, false);
    else if (event.type === 'tool-delta') this.#add(`tool ${event.block}`, event.input, false);
    else if (event.type === 'media-delta') this.#add(`media ${event.block}`, event.transcript ?? '', false);
    else if (event.type === 'citation') this.#add('citation', `${event.citation.quote ?? ''}\n`, false);
    else if (event.type === 'opaque' || event.type === 'result')
      mapWords(event.value as JsonObject, '', (text) => {
        this.#add(event.type, `${text}\n`, event.type === 'result');
        return text;
      });
  }

  of({ remote }: RemotelyChecked): readonly JudgedText[] {
    const blocks = [...this.#blocks.values()];
    const counted = remote.answersOnly ? blocks.filter(({ isAnswer }) => isAnswer) : blocks;
    return counted.map(({ text }) => ({ role: 'assistant', text }));
  }

  #add(key: string, text: string, isAnswer: boolean): void {
    if (text === '') return;
    this.#length += text.length;
    const block = this.#blocks.get(key);
    if (block === undefined) this.#blocks.set(key, { text, isAnswer });
    else block.text += text;
  }
}

/** Characters of an event that differ from event to event. */
function sizeOf(event: GatewayEvent): number {
  switch (event.type) {
    case 'text-delta':
    case 'reasoning-delta':
    case 'refusal-delta':
      return event.text.length;
    case 'tool-delta':
      return event.input.length;
    case 'media-delta':
      return (event.data?.length ?? 0) + (event.transcript?.length ?? 0);
    case 'partial-image':
      return event.data.length;
    // A whole result is there in any case.
    case 'result':
      return 0;
    default:
      return JSON.stringify(event).length;
  }
}

/** Holds a reply back until all checks have looked at the whole of it. */
function holdWhole(reply: Reply, checks: readonly RemotelyChecked[], session: Session): Reply {
  const { call, reporter } = session;
  const gathered = new Gathered();
  const longest = checks.reduce((most, { remote }) => Math.max(most, remote.longest), 0);
  const verdicts = async (events: readonly GatewayEvent[]): Promise<readonly GatewayEvent[]> => {
    const answers = await Promise.all(
      checks.map((check) =>
        runCheckInCall(check, { side: 'response', texts: gathered.of(check), call }, reporter),
      ),
    );
    for (const outcome of answers) settle(outcome, 'response', call, reporter);
    return events;
  };
  return reply.pipe(
    tap((event) => {
      gathered.take(event);
      // Held events use memory, also with `whenDown: allow`.
      if (gathered.length > longest || gathered.isTooLarge)
        throw new GatewayError('content_policy_violation', 'The response is too long to be checked.', {
          retryable: false,
        });
    }),
    toArray(),
    concatMap((events) => from(verdicts(events)).pipe(concatMap((all) => all))),
  );
}

/** Starts the checks that only alert once the response is complete, without delaying it. */
function startChecksBeside(checks: readonly RemotelyChecked[], session: Session) {
  const { call, beside } = session;
  const gathered = new Gathered();
  const longest = checks.reduce((most, { remote }) => Math.max(most, remote.longest), 0);
  return {
    event(event: GatewayEvent): void {
      if (gathered.length <= longest) gathered.take(event);
    },
    end(how: 'complete' | 'error' | 'left'): void {
      if (how !== 'complete') return;
      for (const check of checks) beside.start(check, { side: 'response', texts: gathered.of(check), call });
    },
  };
}

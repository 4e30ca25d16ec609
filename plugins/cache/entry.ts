/** Cache entries: which responses are stored, which of their events, and their estimated size. */
import type { FinishReason, GatewayEvent, Usage } from 'sluice';
import type { CacheOptions } from './options.ts';

/** A stored response. Of the request it has the name of the model only. */
export interface Entry {
  readonly digest: string;
  readonly scope: string;
  /** Milliseconds since 1970 at which the request arrived that led to the response. */
  readonly at: number;
  /** The format of the client that got it first, in which its dropped fields are named. */
  readonly format: string;
  readonly events: readonly GatewayEvent[];
  /** Estimated size in bytes. */
  readonly bytes: number;
}

/** Returns the age of an entry in seconds, counted from the arrival of its request. */
export function ageOf({ at }: Entry): number {
  return Math.max(0, Date.now() - at) / 1_000;
}

/** Bytes that an event takes besides its text. */
const perEvent = 64;

/** Events of a response that are about one call, and not about its content. */
const ofOneCall: ReadonlySet<GatewayEvent['type']> = new Set<GatewayEvent['type']>([
  'request',
  'attempt',
  'answer',
]);

/** Events whose responses are not stored: bytes that were not decoded, media, lists. */
const notKept: ReadonlySet<GatewayEvent['type']> = new Set<GatewayEvent['type']>([
  'frames',
  'bytes',
  'message',
  'models',
  'partial-image',
  'media-start',
]);

/** Returns true for an event that is about one call alone. */
export function isOfOneCall({ type }: GatewayEvent): boolean {
  return ofOneCall.has(type);
}

/** Returns the estimated size of an event in memory, and in the database. */
export function sizeOf(event: GatewayEvent): number {
  switch (event.type) {
    case 'text-delta':
      return perEvent + event.text.length + (event.logprobs === undefined ? 0 : weigh(event.logprobs));
    case 'reasoning-delta':
    case 'refusal-delta':
      return perEvent + event.text.length;
    case 'tool-delta':
      return perEvent + event.input.length;
    default:
      return perEvent + weigh(event);
  }
}

function weigh(value: unknown): number {
  if (typeof value === 'string') return value.length + 2;
  if (typeof value !== 'object' || value === null) return 8;
  if (Array.isArray(value)) {
    // Vectors are long lists of numbers.
    if (typeof value[0] === 'number') return 20 * value.length;
    let sum = 2;
    for (const one of value) sum += weigh(one);
    return sum;
  }
  let sum = 2;
  for (const [name, member] of Object.entries(value)) sum += name.length + 4 + weigh(member);
  return sum;
}

/** Options that decide which responses are stored. */
export type Rules = Pick<CacheOptions, 'toolCalls' | 'length' | 'refusals'>;

/** Returns true for a complete response that is kept by the rules. */
export function isKept(events: readonly GatewayEvent[], rules: Rules): boolean {
  let isComplete = false;
  let saysSomething = false;
  for (const event of events) {
    if (notKept.has(event.type)) return false;
    if (event.type === 'refusal-start' && !rules.refusals) return false;
    if (event.type === 'tool-start' && !rules.toolCalls) return false;
    if (event.type === 'finish') {
      if (!isGoodEnd(event.reason, rules)) return false;
      isComplete = true;
    } else if (event.type === 'result') isComplete = saysSomething = true;
    else if (event.type.endsWith('-delta')) saysSomething = true;
    else if (event.type === 'tool-start') saysSomething = true;
  }
  return isComplete && saysSomething;
}

function isGoodEnd(reason: FinishReason, { toolCalls, length, refusals }: Rules): boolean {
  switch (reason) {
    case 'stop':
    case 'stop-sequence':
      return true;
    case 'tool-calls':
      return toolCalls;
    case 'length':
      return length;
    case 'refusal':
    case 'content-filter':
      return refusals;
    default:
      return false;
  }
}

/** Returns the events to store: without those that are about one call, and with consecutive deltas joined. */
export function compacted(events: readonly GatewayEvent[]): readonly GatewayEvent[] {
  const out: GatewayEvent[] = [];
  let pieces: string[] = [];
  const flush = (): void => {
    const last = out.at(-1);
    if (pieces.length > 1 && last !== undefined) out[out.length - 1] = withText(last, pieces.join(''));
    pieces = [];
  };
  for (const event of events) {
    if (isOfOneCall(event)) continue;
    const text = textOf(event);
    const last = out.at(-1);
    if (text !== undefined && pieces.length > 0 && last !== undefined && canJoin(last, event)) {
      pieces.push(text);
      continue;
    }
    flush();
    out.push(event);
    if (text !== undefined) pieces = [text];
  }
  flush();
  // Usage is stored last, because whole responses may report it first, and some streams in their last chunk only.
  const usage = out.findLast(({ type }) => type === 'usage');
  if (usage !== undefined && out.at(-1) !== usage) out.push(usage);
  return out;
}

/** Returns the text of a delta that has only a text; undefined for every other event. */
function textOf(event: GatewayEvent): string | undefined {
  if ('extra' in event && event.extra !== undefined) return undefined;
  switch (event.type) {
    case 'text-delta':
      return event.logprobs === undefined ? event.text : undefined;
    case 'reasoning-delta':
    case 'refusal-delta':
      return event.text;
    case 'tool-delta':
      return event.input;
    default:
      return undefined;
  }
}

function withText(event: GatewayEvent, text: string): GatewayEvent {
  if (event.type === 'tool-delta') return { ...event, input: text };
  return event.type === 'text-delta' || event.type === 'reasoning-delta' || event.type === 'refusal-delta'
    ? { ...event, text }
    : event;
}

function canJoin(one: GatewayEvent, other: GatewayEvent): boolean {
  return (
    one.type === other.type &&
    'block' in one &&
    'block' in other &&
    one.block === other.block &&
    one.choice === other.choice
  );
}

/** Returns the last usage that a response reports. */
export function usageIn(events: readonly GatewayEvent[]): Usage | undefined {
  const last = events.findLast(({ type }) => type === 'usage');
  return last?.type === 'usage' ? last.usage : undefined;
}

/** State of one call whose context may be compacted, and the compaction itself: a sealed summary, which later attempts of the call use again. */
import {
  callKey,
  caller,
  GatewayError,
  chatFormats,
  type Call,
  type GatewayEvent,
  type JsonObject,
  type Next,
  type Sealer,
  type Target,
  type Usage,
} from 'sluice';
import type { Codec } from 'sluice/channel-kit';
import type { Item } from './items.ts';
import { suffixOf } from './reply.ts';
import { compactionItem, type Compacted } from './seals.ts';
import { summarise } from './summarise.ts';

/** The format that this plugin is about. */
export const format = 'responses';

/** Call that may be compacted, with its context and services. */
export interface Work {
  readonly call: Call;
  readonly next: Next;
  readonly target: Target;
  /** Requests a response in the format of the items. */
  readonly codec: Codec;
  readonly sealer: Sealer;
  /** The context, with the gateway's own compactions opened. */
  readonly items: readonly Item[];
  /** Number of items in the request, before the gateway's own compactions were opened. */
  readonly written: number;
  /** True when `items` is not what the body holds. */
  readonly changed: boolean;
  /** Tokens from which on the context is compacted where the client does not say it. */
  readonly threshold: number;
}

/** Share of the threshold that the newest turns, which are kept as they are, may use. */
export const keptShare = 0.5;

/** Returns the call's owner in seals: its API key. */
export function ownerOf(call: Call): string {
  return call.get(caller)?.id ?? '';
}

/** Returns true when the provider of the target has native compaction. */
export function compactsItself(target: Target): boolean {
  return target.channel.speaks.compact?.includes(format) === true && chatFormats(target).includes(format);
}

/** Returns true when the request refers to earlier turns that are stored elsewhere, so that its items are not the whole context. */
export function refersBack(body: JsonObject): boolean {
  const { previous_response_id: previous, conversation } = body;
  return (previous ?? undefined) !== undefined || (conversation ?? undefined) !== undefined;
}

/** Returns the error for a context whose earlier turns are stored elsewhere. `stored-responses` writes them out and tries again. */
export function unseen(): GatewayError {
  return new GatewayError(
    'previous_response_not_found',
    'The channel for this model cannot compact earlier turns. Send the whole context as `input`.',
    { param: 'previous_response_id' },
  );
}

/** A compaction that was made. */
export interface Made {
  readonly item: Item;
  readonly summary: string;
  readonly usage: Usage;
  readonly attempt: GatewayEvent | undefined;
}

/** The summary of a call, which later attempts at other channels use again. */
const made = callKey<{ readonly head: number; readonly made: Made }>('compaction');

/** The items of a compaction, and options of its item in the output. */
export interface Order {
  readonly head: readonly Item[];
  readonly kept: readonly Item[];
  /** See {@link Compacted}. */
  readonly covers?: number;
  /** The place of the compaction item in the output. */
  readonly index?: number;
  readonly prompt?: string | undefined;
}

/** Summarises the head of a context, and seals the summary for the client. */
export async function compacted(
  { call, next, codec, sealer }: Work,
  { head, kept, covers, index = 0, prompt }: Order,
): Promise<Made> {
  const before = call.get(made);
  if (before?.head === head.length) return before.made;
  const { text, usage, attempt } = await summarise({ call, next, codec, items: head, prompt });
  const value: Compacted = {
    model: call.model,
    summary: text,
    kept,
    ...(covers === undefined ? {} : { covers }),
  };
  const item = compactionItem(sealer, ownerOf(call), `cmp_${suffixOf(call)}_${index}`, value);
  const result: Made = { item, summary: text, usage, attempt };
  call.set(made, { head: head.length, made: result });
  return result;
}

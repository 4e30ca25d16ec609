/** Stores reasoning that a client's format cannot carry, and restores it in the next turn. */
import type { MonoTypeOperatorFunction, Observable } from 'rxjs';
import { z } from 'zod';
import {
  caller,
  definePlugin,
  startWithEvents,
  chatOf,
  chatOutlineOf,
  formatFor,
  holdBack,
  type Call,
  type CallEdits,
  type Catalog,
  type ChatRequest,
  type GatewayEvent,
  type Loss,
  type Next,
  type Target,
} from 'sluice';
import { Listener, type Collected } from './listener.ts';
import { proofKey, Memory, sizeOf, type Entry } from './memory.ts';
import { Passing } from './passing.ts';
import { forgottenIn, recall, type RecallOptions } from './recall.ts';
import { Before, conversationOf } from './conversation.ts';
import { withoutStrangers } from './strangers.ts';
import { makerOf, type Turn } from './turn.ts';

const options = z.strictObject({
  /** Milliseconds for which reasoning is stored for the client's next turn. */
  ttl: z
    .int()
    .min(1)
    .default(24 * 60 * 60 * 1000),
  /** Maximum bytes of reasoning that is stored for one turn. */
  turnLimit: z
    .int()
    .min(1024)
    .default(1024 * 1024),
  /** Maximum bytes of the in-memory copy of the latest reasoning, in each process. */
  copies: z
    .int()
    .min(0)
    .default(32 * 1024 * 1024),
});

/** Attempt, with the options for decoding its response. */
interface Attempt {
  readonly call: Call;
  readonly target: Target;
  readonly format: string;
  readonly owner: string;
  /** True if the maker of a proof is stored. */
  readonly proofs: boolean;
}

/**
 * Keeps a model's reasoning across a tool loop, with every client: stores reasoning that the client's format cannot carry, or that the
 * client drops, and restores it unchanged when the turn returns. If another model responds, the reasoning is left out and listed in
 * `x-sluice-loss`.
 */
export default definePlugin({
  name: 'reasoning-vault',
  stage: 'translate',
  before: ['learned-refusals', 'parallel-choices', 'translation'],
  options,
  setup({ ttl, turnLimit, copies }, { stores, catalog, log }) {
    const failed = (error: unknown): void =>
      log.error({ error }, 'the database failed: clients that drop reasoning continue without it');
    const memory = new Memory(stores, { ttl, copies, failed });
    const contested = contestedFormats(catalog);

    /**
     * What is wrong with a history, set right. What is known of turns is found by their ids and proofs, which stand in the outline: the
     * words of a long conversation are read when something is.
     */
    const mended = async (
      call: Call,
      owner: string,
      about: RecallOptions,
      proofs: boolean,
    ): Promise<{ readonly edits?: CallEdits; readonly losses: readonly Loss[] }> => {
      const outline = chatOutlineOf(call).messages;
      const { target, to } = about;
      const foreign = proofs && (await withoutStrangers(outline, memory, target, to)) !== undefined;
      const forgotten = await forgottenIn(call, memory, owner);
      if (!foreign && forgotten.length === 0) return { losses: [] };
      const { messages } = chatOf(call);
      const known = proofs ? ((await withoutStrangers(messages, memory, target, to)) ?? messages) : messages;
      const recalled = recall(known, forgotten, about);
      const history = recalled.messages ?? known;
      return {
        ...(history === messages ? {} : { edits: { messages: history } }),
        losses: recalled.losses,
      };
    };

    /** Runs an attempt whose conversation or response may have reasoning that a client drops, or that another provider made. */
    const guarded = async (
      call: Call,
      next: Next,
      target: Target,
      format: string,
    ): Promise<Observable<GatewayEvent>> => {
      const owner = call.get(caller)?.id ?? '';
      const from = call.codec.format;
      const proofs = contested.has(format);
      const listen = (): MonoTypeOperatorFunction<GatewayEvent> =>
        listening({ call, target, format, owner, proofs }, memory, turnLimit);
      // An item that stands for a whole history is encrypted by one account, like reasoning.
      if (call.operation === 'compact') return proofs ? (await next(call)).pipe(listen()) : next(call);

      const { edits, losses: lost } = await mended(call, owner, { target, from, to: format }, proofs);
      const turns = chatOutlineOf(call).tools.length > 0 && forgets(from, format);
      const reply = await next(edits === undefined ? call : call.with(edits));

      const collected = proofs || turns ? reply.pipe(listen()) : reply;
      const losses = lost.map((loss): GatewayEvent => ({ type: 'loss', loss }));
      return losses.length === 0 ? collected : startWithEvents(losses, collected);
    };

    return function reasoningVault(call, next) {
      const { target, operation } = call;
      if (target === undefined || (operation !== 'chat' && operation !== 'compact')) return next(call);
      const format = formatFor(call, target);
      if (format === undefined) return next(call);
      // Calls without tools need no restored reasoning.
      if (operation === 'chat' && !contested.has(format) && !usesTools(chatOutlineOf(call)))
        return next(call);
      return guarded(call, next, target, format);
    };
  },
});

/**
 * Formats in which the proofs of one key, of whatever channel, could be handed to another: who made them is remembered. In chat completions a proof is another
 * format's, and travels with the name of its maker.
 */
function contestedFormats({ channels }: Catalog): ReadonlySet<string> {
  const formats = channels.flatMap(({ keys, speaks }) => keys.flatMap(() => speaks.chat ?? []));
  const several = formats.filter((format, index) => formats.indexOf(format) < index);
  return new Set(several.filter((format) => format !== 'chat-completions'));
}

function usesTools({ tools, messages }: ChatRequest): boolean {
  return (
    tools.length > 0 ||
    messages.some(
      ({ role, content }) => role === 'assistant' && content.some(({ type }) => type === 'tool-call'),
    )
  );
}

/**
 * Returns true if the client may not send back the reasoning that the provider needs. Formats that pass through have a field for it, but
 * clients of one of them do not know it.
 */
function forgets(from: string, to: string): boolean {
  return from !== to || from === 'chat-completions';
}

/** Stores the reasoning of a response before its end is sent. */
function listening(
  attempt: Attempt,
  memory: Memory,
  turnLimit: number,
): MonoTypeOperatorFunction<GatewayEvent> {
  const { call, target, format } = attempt;
  const bare = format === 'chat-completions' && target.traits.replaysReasoning === true;
  const listener = new Listener({ bare, limit: turnLimit });
  const passing = new Passing(
    { codec: call.codec, traits: target.traits, bare, limit: 4 * turnLimit },
    listener,
  );
  const keep = (): Promise<void> | undefined => {
    const collected = listener.take();
    if (collected === undefined) return undefined;
    const entries = entriesOf(collected, attempt, memory, turnLimit);
    if (entries.length === 0) return undefined;
    return memory.write(entries);
  };
  return holdBack(call, {
    see(event) {
      if (event.type === 'frames') {
        passing.frames(event.bytes);
        return listener.pending && passing.ends(event.bytes) ? 'keep' : 'pass';
      }
      if (event.type === 'bytes') {
        passing.bytes(event.bytes);
        return 'late';
      }
      listener.event(event);
      return event.type === 'finish' ? 'keep' : 'pass';
    },
    keep(failure) {
      // A response that broke off is not stored, because no turn can continue from it.
      if (failure !== undefined) return undefined;
      passing.end();
      return keep();
    },
  });
}

function entriesOf(
  { turns, proofs }: Collected,
  attempt: Attempt,
  memory: Memory,
  turnLimit: number,
): readonly Entry[] {
  const { call, target, format, owner } = attempt;
  const maker = makerOf(target);
  const entries: Entry[] = [];
  // The last frame of a stream may repeat earlier content.
  const values = attempt.proofs ? new Set(proofs.map(({ value }) => value)) : [];
  for (const value of values) entries.push({ key: proofKey(value), value: { maker } });
  const conversation = conversationOf(call);
  const before = new Before(() => conversation);
  for (const { thoughts, calls } of turns) {
    if (sizeOf({ thoughts, calls }) > turnLimit) continue;
    const turn: Turn = { maker, format, thoughts, calls };
    const digest = before.digest(conversation.messages.length);
    for (const entry of memory.entriesOf(owner, turn, digest)) entries.push(entry);
  }
  return entries;
}

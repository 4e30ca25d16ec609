/** Sends a conversation back to the channel that can read its encrypted reasoning. */
import { z } from 'zod';
import {
  caller,
  definePlugin,
  chatOutlineOf,
  type Block,
  type Call,
  type CallEdits,
  type JsonValue,
  type Message,
} from 'sluice';
import { proofKey, Memory } from './reasoning-vault/memory.ts';
import { forgottenIn } from './reasoning-vault/recall.ts';
import { proofsOf, type Maker } from './reasoning-vault/turn.ts';

const options = z.strictObject({
  /** Maximum bytes of the in-memory copy of reasoning origins, in each process. */
  copies: z
    .int()
    .min(0)
    .default(4 * 1024 * 1024),
});

/**
 * Sends a conversation back to the channel and key that encrypted its reasoning, because no other account can read it. If that target
 * fails, another one responds without the reasoning. Knows the reasoning that `reasoning-vault` has stored.
 */
export default definePlugin({
  name: 'reasoning-affinity',
  stage: 'shape',
  before: ['session-affinity'],
  options,
  setup({ copies }, { stores, catalog, log }) {
    const failed = (error: unknown): void =>
      log.error({ error }, 'the database failed: encrypted reasoning may reach another account');
    // This plugin writes nothing.
    const memory = new Memory(stores, { ttl: 0, copies, failed });

    /** Returns the target that this conversation should go back to; undefined if any target is suitable. */
    const home = async (call: Call): Promise<Maker | undefined> => {
      const { messages } = chatOutlineOf(call);
      return (await makerOfProofs(messages, memory)) ?? (await makerOfTurns(call, memory));
    };
    const areSeveral = (model: string): boolean => {
      const [first, second] = catalog.candidates(model);
      return second !== undefined || (first?.targets.length ?? 0) > 1;
    };

    return function reasoningAffinity(call, next) {
      if (call.operation !== 'chat' && call.operation !== 'compact') return next(call);
      if (call.edits.affinity !== undefined || !areSeveral(call.model)) return next(call);
      return home(call).then((maker) => next(maker === undefined ? call : call.with(backTo(maker))));
    };
  },
});

function backTo({ channel, key }: Maker): CallEdits {
  return { affinity: { channel, ...(key === undefined ? {} : { key }) } };
}

/** Returns the maker of the latest encrypted reasoning that the client sent. */
async function makerOfProofs(messages: readonly Message[], memory: Memory): Promise<Maker | undefined> {
  const keys = messages.flatMap(({ content }) => content.flatMap(encryptedIn)).map(proofKey);
  if (keys.length === 0) return undefined;
  const known = await memory.read(keys);
  for (const key of keys.toReversed()) {
    const kept = known.get(key);
    if (kept !== undefined && 'maker' in kept) return kept.maker;
  }
  return undefined;
}

/** Returns the maker of the latest encrypted reasoning that the client left out. */
async function makerOfTurns(call: Call, memory: Memory): Promise<Maker | undefined> {
  const turns = await forgottenIn(call, memory, call.get(caller)?.id ?? '');
  const last = turns.findLast(({ turn }) => proofsOf(turn).some(({ kind }) => kind === 'encrypted'));
  return last?.turn.maker;
}

function encryptedIn(block: Block): readonly string[] {
  if (block.type === 'opaque') return textIn(block.value.encrypted_content);
  const proof = 'proof' in block ? block.proof : undefined;
  return proof?.kind === 'encrypted' ? [proof.value] : [];
}

function textIn(value: JsonValue | undefined): readonly string[] {
  return typeof value === 'string' && value !== '' ? [value] : [];
}

import { z } from 'zod';
import { chatOf, caller, definePlugin, type Block, type Call, type JsonValue, type Message } from '#sluice';
import { proofKey, Memory } from './reasoning-vault/memory.ts';
import { forgottenTurns } from './reasoning-vault/recall.ts';
import { proofsOf } from './reasoning-vault/turn.ts';

const options = z.strictObject({
  /** Bytes of what is known of encrypted reasoning of which each process holds a copy in memory. */
  copies: z
    .int()
    .min(0)
    .default(4 * 1024 * 1024),
});

/**
 * Where several channels serve a model, a conversation goes back to the one that encrypted its reasoning: no other can read it. When that
 * one fails another answers without it. What `reasoning-vault` has seen is what this one knows.
 */
export default definePlugin({
  name: 'reasoning-affinity',
  stage: 'shape',
  options,
  setup({ copies }, { stores, catalog, log }) {
    const failed = (error: unknown): void =>
      log.error({ error }, 'the database failed: encrypted reasoning may reach another account');
    // Nothing is written here.
    const memory = new Memory(stores, { ttl: 0, copies, failed });

    /** The channel that this conversation should go back to; undefined when any will do. */
    const home = async (call: Call): Promise<string | undefined> => {
      const { messages } = chatOf(call);
      return (
        (await channelOfProofs(messages, memory)) ??
        (await channelOfTurns(messages, memory, call.get(caller)?.id ?? ''))
      );
    };

    return function reasoningAffinity(call, next) {
      if (call.operation !== 'chat' && call.operation !== 'compact') return next(call);
      if (call.edits.affinity !== undefined || catalog.targets(call.model).length < 2) return next(call);
      return home(call).then((channel) =>
        next(channel === undefined ? call : call.with({ affinity: { channel } })),
      );
    };
  },
});

/** The channel that made the latest of the encrypted pieces which the client sent. */
async function channelOfProofs(messages: readonly Message[], memory: Memory): Promise<string | undefined> {
  const keys = messages.flatMap(({ content }) => content.flatMap(encryptedIn)).map(proofKey);
  if (keys.length === 0) return undefined;
  const known = await memory.read(keys);
  for (const key of keys.toReversed()) {
    const kept = known.get(key);
    if (kept !== undefined && 'maker' in kept) return kept.maker.channel;
  }
  return undefined;
}

/** The channel that made the latest encrypted reasoning which the client forgot. */
async function channelOfTurns(
  messages: readonly Message[],
  memory: Memory,
  owner: string,
): Promise<string | undefined> {
  const turns = await forgottenTurns(messages, memory, owner);
  const last = turns.findLast(({ turn }) => proofsOf(turn).some(({ kind }) => kind === 'encrypted'));
  return last?.turn.maker.channel;
}

function encryptedIn(block: Block): readonly string[] {
  if (block.type === 'opaque') return textIn(block.value.encrypted_content);
  const proof = 'proof' in block ? block.proof : undefined;
  return proof?.kind === 'encrypted' ? [proof.value] : [];
}

function textIn(value: JsonValue | undefined): readonly string[] {
  return typeof value === 'string' && value !== '' ? [value] : [];
}

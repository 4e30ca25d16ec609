import type { Block, JsonObject, Message, Extra, Proof, Target } from 'sluice';
import { proofKey, type Memory } from './memory.ts';
import { isAccountOf, type Maker } from './turn.ts';

/** Name that no format has, so that every encoder treats the signature as foreign, drops it and reports that. */
const elsewhere = 'another provider';

/**
 * Returns the history without signatures that the target would reject because another provider made them, as far as that is known. Undefined
 * if nothing changes.
 */
export async function withoutStrangers(
  messages: readonly Message[],
  memory: Memory,
  target: Target,
  format: string,
): Promise<readonly Message[] | undefined> {
  const keys = new Map<Block, string>();
  for (const { role, content } of messages) {
    if (role !== 'assistant') continue;
    for (const block of content) {
      const proof = proofOf(block);
      if (proof?.format === format) keys.set(block, proofKey(proof.value));
    }
  }
  if (keys.size === 0) return undefined;
  const known = await memory.read(keys.values());
  const strange = (block: Block): boolean => {
    const kept = known.get(keys.get(block) ?? '');
    const proof = proofOf(block);
    return kept !== undefined && 'maker' in kept && proof !== undefined && refuses(target, kept.maker, proof);
  };
  if (![...keys.keys()].some(strange)) return undefined;
  return messages.map((message) =>
    message.content.some(strange)
      ? { ...message, content: message.content.map((block) => (strange(block) ? disowned(block) : block)) }
      : message,
  );
}

/** Returns true when the target rejects the signature. An account accepts encrypted reasoning of all its models, and a model its signatures at any account. */
function refuses(target: Target, maker: Maker, proof: Proof): boolean {
  if (isAccountOf(maker, target)) return false;
  const { channel, model } = target;
  return proof.kind === 'encrypted' || maker.kind !== channel.kind || maker.model !== model;
}

function proofOf(block: Block): Proof | undefined {
  return 'proof' in block ? block.proof : undefined;
}

function disowned(block: Block): Block {
  const proof = proofOf(block);
  if (proof === undefined) return block;
  const { extra, ...rest } = block;
  const kept = block.type === 'reasoning' ? undefined : withoutProofs(extra);
  return {
    ...rest,
    ...(kept === undefined ? {} : { extra: kept }),
    proof: { ...proof, format: elsewhere },
  } as Block;
}

/** Members of chat completions that have the signature of a call. */
const carriers: ReadonlySet<string> = new Set(['$detail', '$extra_content', 'extra_content']);

function withoutProofs(extra: Extra | undefined): Extra | undefined {
  if (extra === undefined) return undefined;
  const formats = Object.entries(extra).map(([format, fields]): [string, JsonObject] => [
    format,
    Object.fromEntries(Object.entries(fields).filter(([name]) => !carriers.has(name))),
  ]);
  return Object.fromEntries(formats);
}

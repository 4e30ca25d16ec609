import type { Block } from '../../model/chat.ts';
import type { Proof } from '../../model/extra.ts';
import type { JsonObject, JsonValue } from '../../model/json.ts';
import { readObjects } from './check.ts';
import { carriedBy } from './proof.ts';

/** Decoders of a format whose messages consist of blocks. */
interface BlockReader {
  readonly block: (value: JsonObject, at: string) => Block;
  /** Signature of a block of reasoning without text. */
  readonly signature: (value: JsonObject) => JsonValue | undefined;
  /** The mark that a block makes which is nothing but one for the block before it. */
  readonly cache?: (value: JsonObject, at: string) => Block['cache'];
}

/**
 * Returns the blocks of a message, or 400 with the path. A proof of another format on text or on a call rides in an empty block of reasoning of its
 * own: before its call, because the proof is known when the call starts, and after its text, because it is known only when that has ended.
 */
export function readBlocks(list: JsonValue | undefined, path: string, reader: BlockReader): Block[] {
  const blocks: Block[] = [];
  let waiting: Proof | undefined;
  readObjects(list, path, (value, at) => {
    const last = blocks.at(-1);
    const cache = reader.cache?.(value, at);
    const carried = carriedBy(reader.signature(value));
    if (cache !== undefined && last !== undefined && last.cache === undefined) {
      blocks[blocks.length - 1] = { ...last, cache };
    } else if (carried?.on === 'tool-call') {
      waiting = carried.proof;
    } else if (carried !== undefined) {
      const { proof } = carried;
      if (last?.type === 'text' && last.proof === undefined) blocks[blocks.length - 1] = { ...last, proof };
      else blocks.push({ type: 'text', text: '', proof, at });
    } else {
      const block = reader.block(value, at);
      blocks.push(waiting !== undefined && block.type === 'tool-call' ? { ...block, proof: waiting } : block);
      waiting = undefined;
    }
  });
  return blocks;
}

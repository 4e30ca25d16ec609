import type { Block, MediaBlock, Message, TextBlock } from '../../model/chat.ts';
import type { JsonObject, JsonValue, MutableObject } from '../../model/json.ts';
import { reportForeign } from '../_shared/foreign.ts';
import { finishPiece, dropField, markFor, refuse, typeName, withCache, type Scope } from './scope.ts';

/** Encoders for the parts of a content in a format of this family. */
interface PartWords {
  readonly text: (block: TextBlock, role: Message['role'] | undefined) => MutableObject;
  /** Undefined for media that were dropped. Throws 400 for those that have no part here. */
  readonly media: (block: MediaBlock, scope: Scope) => MutableObject | undefined;
  /** Media that have a level of detail. */
  readonly detailed: readonly MediaBlock['type'][];
  /** {@link putBack} */
  readonly nested?: readonly string[];
  /** Several parts stay a list if one of them has content. */
  readonly keepsLists?: true;
  /** Reasoning that stands among the parts may be left out. */
  readonly sparesReasoning?: true;
}

/**
 * Returns an encoder for the blocks of a turn or a tool result. It returns one string if the blocks were a string or contain only text,
 * because many providers accept parts only in user turns; otherwise parts. The encoder throws 400 for content without a part in this
 * format.
 */
export function contentWriter(words: PartWords) {
  const finished = (part: MutableObject | undefined, block: Block, scope: Scope): JsonObject | undefined =>
    part && finishPiece(withCache(part, block, scope), block, scope, words.nested);

  const write = (
    block: Exclude<Block, TextBlock>,
    scope: Scope,
    role: Message['role'] | undefined,
  ): JsonObject | undefined => {
    switch (block.type) {
      case 'refusal':
        return finished({ type: 'refusal', refusal: block.text }, block, scope);
      case 'image':
      case 'audio':
      case 'video':
      case 'file': {
        if (role === 'assistant' && scope.foreign)
          return refuse(block, `${block.type} in an assistant turn`, scope);
        const part = words.media(block, scope);
        if (part === undefined) return undefined;
        if (block.name !== undefined && block.type !== 'file') dropField(block, 'name', scope);
        if (block.detail !== undefined && !words.detailed.includes(block.type))
          dropField(block, 'detail', scope);
        return finished(part, block, scope);
      }
      case 'opaque':
        if (block.format === scope.format) return block.value;
        return refuse(block, `content of type ${typeName(block.value)}`, scope);
      case 'reasoning':
        if (words.sparesReasoning === undefined) return refuse(block, 'a reasoning in this place', scope);
        scope.target.drop(block.at ?? '');
        return undefined;
      default:
        return refuse(block, `a ${block.type} in this place`, scope);
    }
  };

  return (
    blocks: readonly Block[],
    plain: boolean | undefined,
    scope: Scope,
    role?: Message['role'],
  ): JsonValue => {
    const written = scope.foreign
      ? blocks.filter((block) => block.type !== 'text' || block.text !== '')
      : blocks;
    const one = plain === true || (words.keepsLists === true ? blocks : written).length <= 1;
    if (one && fitsString(written, plain, scope)) {
      for (const block of written) {
        dropOfText(block, scope);
        if (block.cache !== undefined) dropField(block, 'cache', scope);
        reportForeign(block.extra, scope.format, block.at, scope.target.drop);
      }
      return written.map(({ text }) => text).join('');
    }
    return written.flatMap((block): readonly JsonObject[] => {
      if (block.type === 'text') dropOfText(block, scope);
      const part =
        block.type === 'text' ? finished(words.text(block, role), block, scope) : write(block, scope, role);
      return part === undefined ? [] : [part];
    });
  };
}

function fitsString(
  blocks: readonly Block[],
  plain: boolean | undefined,
  scope: Scope,
): blocks is readonly TextBlock[] {
  if (plain !== true && !scope.foreign) return false;
  return blocks.every(
    (block) =>
      block.type === 'text' &&
      block.extra?.[scope.format] === undefined &&
      (block.cache === undefined || markFor(block, scope) === undefined),
  );
}

/** Reports the citations and the proof of a text as dropped, but not a proof that is sent as the client spelled it. */
function dropOfText(block: TextBlock, scope: Scope): void {
  const { $detail } = block.extra?.[scope.format] ?? {};
  if (block.citations !== undefined) dropField(block, 'citations', scope);
  if (block.proof !== undefined && $detail === undefined) dropField(block, 'proof', scope);
}

/** Visits the texts of a chat (instructions, messages, tool calls and results, text documents) and replaces them. */
import type { Block, ChatRequest, JsonObject, Message } from 'sluice';
import { mapItems, mapJsonText, mapWords } from './json.ts';

/** Text of a request. */
export interface RequestText {
  readonly text: string;
  /** Path in the client's request. */
  readonly at: string;
  readonly role: Message['role'];
  /** True for reasoning with a signature: the provider rejects it when the text has changed. */
  readonly isSigned: boolean;
}

/** Receives a text and returns its replacement. */
type ReplaceText = (text: RequestText) => string;

interface Visitor {
  readonly change: ReplaceText;
  readonly changed: ((before: string, after: string) => void) | undefined;
}

/**
 * Returns a chat's instructions and messages with all texts replaced. What does not change stays the same object. `changed` is called with each
 * JSON text in which texts have changed.
 */
export function mapChat(
  { system, messages }: Pick<ChatRequest, 'system' | 'messages'>,
  change: ReplaceText,
  changed?: (before: string, after: string) => void,
): { readonly system: readonly Message[]; readonly messages: readonly Message[] } {
  const visitor = { change, changed };
  return { system: mapTurns(system, 'system', visitor), messages: mapTurns(messages, 'messages', visitor) };
}

function mapTurns(turns: readonly Message[], name: string, visitor: Visitor): readonly Message[] {
  return mapItems(turns, (turn, index) => {
    const at = turn.at ?? `${name}[${index}]`;
    const content = mapBlocks(turn.content, turn.role, at, visitor);
    return content === turn.content ? turn : { ...turn, content };
  });
}

function mapBlocks(
  blocks: readonly Block[],
  role: Message['role'],
  at: string,
  visitor: Visitor,
): readonly Block[] {
  return mapItems(blocks, (block, index) =>
    mapBlock(block, role, block.at ?? `${at}.content[${index}]`, visitor),
  );
}

function mapBlock(block: Block, role: Message['role'], at: string, visitor: Visitor): Block {
  const map = (text: string, where = at): string =>
    visitor.change({ text, at: where, role, isSigned: false });
  switch (block.type) {
    case 'text': {
      const text = map(block.text);
      const citations =
        block.citations === undefined ? undefined : mapItems(block.citations, (one) => mapCitation(one, map));
      if (text === block.text && citations === block.citations) return block;
      return { ...block, text, ...(citations === undefined ? {} : { citations }) };
    }
    case 'refusal': {
      const text = map(block.text);
      return text === block.text ? block : { ...block, text };
    }
    case 'reasoning': {
      const text = visitor.change({ text: block.text, at, role, isSigned: block.proof !== undefined });
      return text === block.text ? block : { ...block, text };
    }
    case 'tool-call': {
      const input = block.custom === true ? map(block.input) : mapJsonText(block.input, map);
      if (input === block.input) return block;
      visitor.changed?.(block.input, input);
      return { ...block, input };
    }
    case 'tool-result': {
      const content = mapBlocks(block.content, role, at, visitor);
      return content === block.content ? block : { ...block, content };
    }
    case 'opaque': {
      const value = mapWords(block.value, at, map) as JsonObject;
      return value === block.value ? block : { ...block, value };
    }
    default:
      return mapMedia(block, map);
  }
}

type Citation = NonNullable<Extract<Block, { readonly type: 'text' }>['citations']>[number];

/** Returns a citation with its words changed. */
export function mapCitation(citation: Citation, map: (text: string) => string): Citation {
  const { quote, title } = citation;
  const changed = {
    ...(quote === undefined ? {} : { quote: map(quote) }),
    ...(title === undefined ? {} : { title: map(title) }),
  };
  return changed.quote === quote && changed.title === title ? citation : { ...citation, ...changed };
}

type Media = Exclude<
  Block,
  { readonly type: 'text' | 'refusal' | 'reasoning' | 'tool-call' | 'tool-result' | 'opaque' }
>;

/** Replaces the texts of documents that are plain text or JSON, and the names of all media. */
function mapMedia(block: Media, map: (text: string) => string): Media {
  const name = block.name === undefined ? undefined : map(block.name);
  const named = name === block.name || name === undefined ? block : { ...block, name };
  const { source } = block;
  if (block.type !== 'file' || source.kind !== 'data' || !/^text\/|[/+]json\b/.test(source.mimeType))
    return named;
  const text = Buffer.from(source.data, 'base64').toString();
  const changed = map(text);
  return changed === text
    ? named
    : { ...named, source: { ...source, data: Buffer.from(changed).toString('base64') } };
}

/** Counting and estimating tokens. */
import type { Block, ChatRequest, Tool } from '../model/chat.ts';
import type { GatewayEvent } from '../model/event.ts';
import { onceForShared } from '../performance/shared-values.ts';
import { estimateTokens, TokenCounter } from './counter.ts';

export { estimateTokens };

/** Tokens an image is taken for when only the gateway counts: what a mid-sized picture costs at the large providers. */
const imageTokens = 1_600;

/** Bytes of a document or a recording, in base64, that are taken for one token. */
const mediaBytes = 64;

/** Tokens of turns, tools and calls besides their text. */
const frameTokens = 4;

/** Characters that are counted one by one; of a longer text so many are, in pieces from all over it. */
const mostCounted = 1024 * 1024;
const samples = 64;

/** Stands between texts, so that no word reaches from one into the next. */
const between = '\0';

/** One for the process: its thread has tables of many megabytes. */
const counter = new TokenCounter();

/**
 * Counts a request's input tokens with the o200k tokenizer, in a thread of its own. An estimate: providers that do not publish theirs come
 * out up to a sixth higher, of more than a million characters as many are counted as a sample, and when very much is to be counted at once
 * four bytes are taken for a token.
 *
 * @example
 * const tokens = await countTokens(chatOf(call));
 */
export async function countTokens(request: ChatRequest): Promise<number> {
  // Tokens that the model's template adds around each message and at the start of its answer.
  let tokens = 3;
  const texts: string[] = [];
  const text = (value: string): void => void texts.push(value);
  for (const message of [...request.system, ...request.messages]) {
    tokens += frameTokens + readBlocks(message.content, text);
  }
  for (const tool of request.tools) {
    tokens += 8;
    texts.push(tool.name ?? '');
    if ('description' in tool) texts.push(tool.description ?? '');
    if (tool.type === 'function') texts.push(JSON.stringify(tool.schema ?? {}));
    if (tool.type === 'opaque') texts.push(JSON.stringify(tool.value));
  }
  return tokens + (await countTexts(texts));
}

/** Hands out the texts of a turn, one by one; gives the tokens of what else there is in it. */
function readBlocks(blocks: readonly Block[], text: (value: string) => void): number {
  let tokens = 0;
  for (const block of blocks) {
    switch (block.type) {
      case 'text':
      case 'refusal':
      case 'reasoning':
        text(block.text);
        break;
      case 'tool-call':
        text(block.name);
        text(block.input);
        tokens += frameTokens;
        break;
      case 'tool-result':
        tokens += frameTokens + readBlocks(block.content, text);
        break;
      case 'opaque':
        text(JSON.stringify(block.value));
        break;
      default:
        tokens +=
          block.source.kind === 'data' && block.type !== 'image'
            ? Math.ceil(block.source.data.length / mediaBytes)
            : imageTokens;
    }
  }
  return tokens;
}

/**
 * Estimates a request's input tokens at once: four bytes a token, and media by their size. `countTokens` is more exact, and slower.
 *
 * @example
 * const tokens = estimateInput(chatOf(call));
 */
export function estimateInput(request: ChatRequest): number {
  return estimateOutline(request, 0);
}

/** Brackets around a list. */
const brackets = 2;

/** Returns the bytes of a tool as JSON. */
function toolBytes(tool: Tool): number {
  if (tool.type !== 'function' || tool.schema === undefined) return jsonBytes(tool);
  const { schema, ...others } = tool;
  return jsonBytes({ ...others, schema: 0 }) - 1 + schemaBytes(schema);
}

function jsonBytes(value: object): number {
  return Buffer.byteLength(JSON.stringify(value));
}

const schemaBytes = onceForShared(jsonBytes);

/** Estimates the input tokens of a request of which texts with so many bytes were left out. */
export function estimateOutline({ system, messages, tools }: ChatRequest, omittedBytes: number): number {
  let tokens = 0;
  let bytes = omittedBytes;
  const text = (value: string): void => void (bytes += Buffer.byteLength(value));
  for (const { content } of [...system, ...messages]) {
    tokens += frameTokens + readBlocks(content, text);
  }
  if (tools.length > 0) bytes += brackets + tools.length - 1;
  for (const tool of tools) bytes += toolBytes(tool);
  return tokens + estimateTokens(bytes);
}

/**
 * Returns the bytes of words that an event of a reply is counted as where its provider tells no usage. `estimateTokens` makes tokens of
 * their sum.
 *
 * @example
 * let bytes = 0;
 * return reply.pipe(observe({ event: (event) => (bytes += wordBytes(event)), end: () => log.info({ tokens: estimateTokens(bytes) }, 'replied') }));
 */
export function wordBytes(event: GatewayEvent): number {
  switch (event.type) {
    case 'text-delta':
    case 'refusal-delta':
    case 'reasoning-delta':
      return Buffer.byteLength(event.text);
    case 'tool-start':
      return Buffer.byteLength(event.name);
    case 'tool-delta':
      return Buffer.byteLength(event.input);
    case 'media-delta':
      return (event.data?.length ?? 0) / 16 + Buffer.byteLength(event.transcript ?? '');
    default:
      return 0;
  }
}

async function countTexts(texts: readonly string[]): Promise<number> {
  const all = texts.filter((text) => text.length > 0);
  const text = all.join(between);
  const sample = text.length > mostCounted ? sampleOf(text) : text;
  const counted = await counter.count(sample);
  // Each character between texts is a token of its own.
  const added = Math.max(0, all.length - 1);
  return sample === text
    ? counted - added
    : Math.ceil((counted - samples + 1) * (text.length / mostCounted)) - added;
}

/** As many characters as are counted, from all over the text. */
function sampleOf(text: string): string {
  const length = mostCounted / samples;
  const pieces: string[] = [];
  for (let index = 0; index < samples; index += 1) {
    const start = Math.floor((index * (text.length - length)) / (samples - 1));
    pieces.push(text.slice(start, start + length));
  }
  return pieces.join(between);
}

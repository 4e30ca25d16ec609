import type { GatewayEvent } from '../../../model/event.ts';
import { isObject, type JsonObject } from '../../../model/json.ts';
import { repliedArguments } from '../../_shared/call-arguments.ts';
import { throwIfError, unusable } from '../../_shared/upstream-error/index.ts';
import { ConverseStreamDecoder } from '../stream-in.ts';
import { listOf, setOf } from '../../_shared/fields.ts';

/** A provider's whole reply as the events of a stream. Throws for an error body and for what is no reply at all. */
export function decodeWhole(body: JsonObject): readonly GatewayEvent[] {
  throwIfError(body);
  const message = isObject(body.output) ? body.output.message : undefined;
  if (!isObject(message) || !Array.isArray(message.content)) {
    throw unusable('sent JSON that is no answer');
  }
  const decoder = new ConverseStreamDecoder();
  return [...unfold(body, message).flatMap(({ event, json }) => decoder.json(event, json)), ...decoder.end()];
}

/** One frame of a stream, parsed. */
interface ParsedFrame {
  readonly event: string;
  readonly json: JsonObject;
}

const stopFields = setOf('stopReason additionalModelResponseFields');

/** The frames in which a stream would have said this whole reply, whose message is `message`. */
function unfold(body: JsonObject, message: JsonObject): readonly ParsedFrame[] {
  const content = listOf(message.content);
  const { output: _, ...rest } = body;
  const of = (inStop: boolean): JsonObject =>
    Object.fromEntries(Object.entries(rest).filter(([key]) => stopFields.has(key) === inStop));
  return [
    { event: 'messageStart', json: { role: message.role } },
    ...content.flatMap((block, index) => (isObject(block) ? framesOf(block, index) : [])),
    { event: 'messageStop', json: of(true) },
    ...(isObject(body.usage) ? [{ event: 'metadata', json: of(false) }] : []),
  ];
}

function framesOf(block: JsonObject, contentBlockIndex: number): readonly ParsedFrame[] {
  const { start, deltas } = pieces(block);
  return [
    ...(start === undefined ? [] : [{ event: 'contentBlockStart', json: { contentBlockIndex, start } }]),
    ...deltas.map((delta) => ({ event: 'contentBlockDelta', json: { contentBlockIndex, delta } })),
    { event: 'contentBlockStop', json: { contentBlockIndex } },
  ];
}

/** How a block begins, and what is said of it after. A block of a kind that has no pieces comes at once. */
function pieces(block: JsonObject): { readonly start?: JsonObject; readonly deltas: readonly JsonObject[] } {
  const { text, toolUse, reasoningContent, citationsContent, image } = block;
  if (typeof text === 'string') return { deltas: [{ text }] };
  if (isObject(toolUse)) {
    const { input, ...call } = toolUse;
    return { start: { toolUse: call }, deltas: [{ toolUse: { input: repliedArguments(input) } }] };
  }
  if (isObject(reasoningContent)) return { deltas: thoughts(reasoningContent) };
  if (isObject(citationsContent)) return { deltas: cited(citationsContent) };
  if (isObject(image)) {
    const { format, source } = image;
    return { start: { image: { format } }, deltas: [{ image: { source } }] };
  }
  return { start: block, deltas: [] };
}

function thoughts({ reasoningText, redactedContent }: JsonObject): readonly JsonObject[] {
  if (redactedContent !== undefined) return [{ reasoningContent: { redactedContent } }];
  const { text = '', signature } = isObject(reasoningText) ? reasoningText : {};
  return [
    { reasoningContent: { text } },
    ...(signature === undefined ? [] : [{ reasoningContent: { signature } }]),
  ];
}

function cited({ content, citations }: JsonObject): readonly JsonObject[] {
  const parts = listOf(content);
  const sources = listOf(citations);
  return [
    ...parts.flatMap((part) =>
      isObject(part) && typeof part.text === 'string' ? [{ text: part.text }] : [],
    ),
    ...sources.map((citation) => ({ citation })),
  ];
}

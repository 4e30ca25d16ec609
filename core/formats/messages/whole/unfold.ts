import { GatewayError } from '../../../sdk/errors.ts';
import { isObject, type JsonObject, type JsonValue } from '../../../model/json.ts';
import { brokenArguments } from '../../_shared/call-arguments.ts';
import type { MutableObject } from '../../_shared/settings.ts';

/** The frames in which a stream would have said this whole reply. */
export function unfold(reply: JsonObject): JsonObject[] {
  const { content, stop_reason, stop_sequence, stop_details, ...message } = reply;
  const blocks: readonly JsonValue[] = Array.isArray(content) ? content : [];
  return [
    {
      type: 'message_start',
      message: { ...message, ...(stop_details === null ? { stop_details } : {}), content: [] },
    },
    ...blocks.flatMap((block, index) => (isObject(block) ? framesOf(block, index) : [])),
    {
      type: 'message_delta',
      delta: {
        stop_reason,
        stop_sequence,
        ...(stop_details === undefined || stop_details === null ? {} : { stop_details }),
      },
    },
    { type: 'message_stop' },
  ];
}

function framesOf(block: JsonObject, index: number): JsonObject[] {
  const { start, deltas } = pieces(block);
  return [
    { type: 'content_block_start', index, content_block: start },
    ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
    { type: 'content_block_stop', index },
  ];
}

/** How a block begins, and what is said of it after. A block of a kind that has no pieces comes at once. */
function pieces(block: JsonObject): { readonly start: JsonObject; readonly deltas: readonly JsonObject[] } {
  switch (block.type) {
    case 'text':
      return textPieces(block);
    case 'thinking':
      return {
        start: { ...block, thinking: '', signature: '' },
        deltas: [
          ...(block.thinking === '' ? [] : [{ type: 'thinking_delta', thinking: block.thinking }]),
          ...(block.signature === '' ? [] : [{ type: 'signature_delta', signature: block.signature }]),
        ],
      };
    case 'tool_use':
      return {
        start: { ...block, input: {} },
        deltas: [{ type: 'input_json_delta', partial_json: inputOf(block.input) }],
      };
    default:
      return { start: block, deltas: [] };
  }
}

function textPieces(block: JsonObject): {
  readonly start: JsonObject;
  readonly deltas: readonly JsonObject[];
} {
  const start: MutableObject = { ...block, text: '' };
  const deltas: JsonObject[] = block.text === '' ? [] : [{ type: 'text_delta', text: block.text }];
  if (Array.isArray(block.citations)) {
    start.citations = [];
    for (const citation of block.citations) deltas.push({ type: 'citations_delta', citation });
  }
  return { start, deltas };
}

/** An input as JSON text; some upstreams send it as text already. */
function inputOf(input: JsonValue | undefined): string {
  if (typeof input === 'string') return input;
  try {
    return brokenArguments(input ?? {}) ?? JSON.stringify(input ?? {});
  } catch {
    throw new GatewayError('upstream_error', 'The upstream sent a tool call nested too deeply.', {
      origin: 'upstream',
    });
  }
}

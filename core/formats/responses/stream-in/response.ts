/**
 * Response objects and items for the Responses stream decoder: splits a whole reply into stream events, and supplies items that a stream
 * did not announce.
 */
import { isObject, type JsonObject } from '../../../model/json.ts';
import { fieldsBeside, objectsOf, setOf } from '../../_shared/fields.ts';
import { unknown } from '../wire.ts';

/** Splits a whole reply into stream frames, with one frame for each finished item. */
export function unfold(response: JsonObject): readonly JsonObject[] {
  const incomplete = response.status === 'incomplete';
  return [
    { type: 'response.created', response: { ...response, status: 'in_progress' } },
    ...objectsOf(response.output).map((item, index) => ({
      type: 'response.output_item.done',
      output_index: index,
      item,
    })),
    { type: incomplete ? 'response.incomplete' : 'response.completed', response },
  ];
}

/** Returns the response object without the members that events carry, and its unknown fields again under their names. */
export function objectFields(response: JsonObject): JsonObject {
  const $response = fieldsBeside(
    response,
    isObject(response.usage) ? streamedFieldsWithUsage : streamedFields,
  );
  return { $response, ...unknown(response, responseFields) };
}

const streamedFields = setOf('id object created_at model output');
const streamedFieldsWithUsage: ReadonlySet<string> = new Set([...streamedFields, 'usage']);
const responseFields: ReadonlySet<string> = new Set([
  ...streamedFieldsWithUsage,
  ...setOf(`
  access_programs background completed_at conversation error frequency_penalty incomplete_details
  instructions max_output_tokens max_tool_calls metadata parallel_tool_calls presence_penalty
  previous_response_id prompt prompt_cache_key prompt_cache_options prompt_cache_retention reasoning
  safety_identifier service_tier status store temperature text tool_choice tools top_logprobs top_p
  truncation user
`),
]);

/** Returns a finished item as it was when it was added. */
export function begunItem(item: JsonObject): JsonObject {
  const begun = item.status === undefined ? item : { ...item, status: 'in_progress' };
  switch (item.type) {
    case 'function_call':
      return { ...begun, arguments: '' };
    case 'custom_tool_call':
      return { ...begun, input: '' };
    case 'reasoning':
      return fieldsBeside(begun, sealed);
    default:
      return begun;
  }
}

const sealed = setOf('encrypted_content');

/** Returns the item that an event of this type begins where none is open; undefined for events that begin none. */
export function itemOf(type: string): JsonObject | undefined {
  if (/^response\.(?:output_text|refusal|content_part)\./.test(type))
    return { type: 'message', role: 'assistant', status: 'in_progress' };
  if (type.startsWith('response.reasoning')) return { type: 'reasoning' };
  return undefined;
}

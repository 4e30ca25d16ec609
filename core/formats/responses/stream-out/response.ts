/** Encodes the response object that events of a Responses stream carry: the echo of the request, defaults, status, usage. */
import { isObject, type JsonObject, type JsonValue, type MutableObject } from '../../../model/json.ts';
import { given } from '../../_shared/check.ts';
import { fieldsBeside, setOf } from '../../_shared/fields.ts';
import type { ReplyContext } from '../../../sdk/format.ts';
import { readInstructions, readTruncation } from '../instructions.ts';

/** State of a response object at one time, beside the echo of the request. */
export interface Snapshot {
  readonly id: string;
  /** Unix seconds. */
  readonly created: number;
  readonly status: 'in_progress' | 'completed' | 'incomplete' | 'failed';
  /** Reason of the status `incomplete`. */
  readonly reason?: string | undefined;
  readonly error?: JsonObject | undefined;
  readonly output: readonly JsonObject[];
  readonly usage?: JsonObject | undefined;
  /** The provider's own object, if its format is Responses. Sent unchanged, except for members that the gateway sets. */
  readonly provider?: JsonObject | undefined;
}

/** Returns the response object, with every field that typed clients expect. */
export function responseObject(snapshot: Snapshot, context: ReplyContext): JsonObject {
  const { id, created, status, output, provider } = snapshot;
  const top = { id, object: 'response', created_at: created };
  if (provider === undefined) return { ...top, ...echo(context), ...state(snapshot, context), output };
  const body: MutableObject = { ...top, status, ...provider, ...kept(context), model: context.model, output };
  if (provider.status !== status || snapshot.error !== undefined)
    Object.assign(body, state(snapshot, context));
  if (snapshot.usage !== undefined) body.usage = snapshot.usage;
  return body;
}

function state({ created, status, reason, error, usage }: Snapshot, context: ReplyContext): JsonObject {
  const completed = (): number => context.completed ?? Math.floor(Date.now() / 1000);
  return {
    status,
    completed_at: status === 'completed' ? Math.max(created, completed()) : null,
    error: error ?? null,
    incomplete_details: reason === undefined ? null : { reason },
    usage: usage ?? null,
  };
}

const credentials = setOf('authorization headers');

/** Official defaults of members that the client did not send. */
const defaults: JsonObject = {
  background: false,
  frequency_penalty: 0,
  instructions: null,
  max_output_tokens: null,
  max_tool_calls: null,
  parallel_tool_calls: true,
  presence_penalty: 0,
  previous_response_id: null,
  prompt_cache_key: null,
  safety_identifier: null,
  service_tier: 'default',
  store: true,
  temperature: 1,
  tool_choice: 'auto',
  tools: [],
  top_logprobs: 0,
  top_p: 1,
  truncation: 'disabled',
  user: null,
  metadata: {},
};

/** Returns the members of the request that the response repeats: the client's values, else the defaults. */
function echo({ body, model }: ReplyContext): MutableObject {
  const snapshot: MutableObject = { model };
  for (const key in defaults) snapshot[key] = given(body[key]) ? body[key] : defaults[key];
  if (snapshot.service_tier === 'auto') snapshot.service_tier = defaults.service_tier;
  if (Array.isArray(snapshot.tools)) snapshot.tools = snapshot.tools.map(shownTool);
  snapshot.truncation = readTruncation(snapshot.truncation) ?? null;
  snapshot.instructions = readInstructions(snapshot.instructions) ?? null;
  snapshot.reasoning = { effort: null, summary: null, ...(isObject(body.reasoning) ? body.reasoning : {}) };
  snapshot.text = { format: { type: 'text' }, ...(isObject(body.text) ? body.text : {}) };
  if (given(body.conversation)) snapshot.conversation = conversation(body.conversation);
  return snapshot;
}

/**
 * Returns a tool as the response shows it. A function has the members that the official type and the Open Responses schema require: null where the
 * client sent none. The credentials for an MCP server are left out, because responses are stored.
 */
function shownTool(tool: JsonValue): JsonValue {
  if (!isObject(tool)) return tool;
  if (tool.type === 'mcp') return fieldsBeside(tool, credentials);
  if (tool.type !== 'function') return tool;
  return { description: null, parameters: null, strict: null, ...tool };
}

/** Returns the members about stored data. They replace the provider's, because the gateway stores the data itself. */
function kept({ body, expanded }: ReplyContext): JsonObject {
  const snapshot: MutableObject = {};
  for (const key of ['previous_response_id', 'store', 'background'] as const) {
    if (given(body[key])) snapshot[key] = body[key];
    else if (expanded !== undefined) snapshot[key] = defaults[key];
  }
  if (given(body.conversation)) snapshot.conversation = conversation(body.conversation);
  return snapshot;
}

function conversation(value: JsonValue): JsonValue {
  return typeof value === 'string' ? { id: value } : value;
}

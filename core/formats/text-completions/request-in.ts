import type { ChatRequest } from '../../model/chat.ts';
import type { JsonObject } from '../../model/json.ts';
import { given, optionalBoolean, optionalObject, peek } from '../_shared/check.ts';
import { readSettings, type MutableObject } from '../_shared/settings.ts';
import { promptMessage } from './parts.ts';
import { rows } from './settings.ts';
import { formatName } from './wire.ts';

const bodyFields = new Set(['model', 'prompt', 'stream', 'stream_options', ...rows.map((row) => row.path)]);

/**
 * A client's request in neutral words: one user turn that is the prompt. Throws 400 with the client's path. Several prompts are several
 * blocks of that turn; whoever has no such channel asks for each by itself.
 */
export function decodeRequest(body: JsonObject): ChatRequest {
  const { model, stream } = peek(body);
  const settings = readSettings(body, rows);
  const extra = readExtra(body);
  return {
    operation: 'chat',
    format: formatName,
    model,
    stream,
    system: [],
    messages: [promptMessage(body.prompt)],
    tools: [],
    settings,
    ...(Object.keys(extra).length === 0 ? {} : { extra: { [formatName]: extra } }),
  };
}

/** What only this format knows. What the encoder of the reply does by itself, or what changes nothing, stands under `$kept` and is no loss. */
function readExtra(body: JsonObject): JsonObject {
  const extra: MutableObject = {};
  const kept: MutableObject = {};
  for (const key in body) {
    const value = body[key];
    if (bodyFields.has(key) || key === '__proto__' || !given(value)) continue;
    if (key.startsWith('$') || isHarmless(key, value)) kept[key] = value;
    else extra[key] = value;
  }
  if (Object.keys(kept).length > 0) extra.$kept = kept;
  if (typeof body.stop === 'string') extra.$stop = 'string';
  if (body.stream === false) extra.$stream = false;
  keepStreamOptions(body, extra);
  return extra;
}

function isHarmless(key: string, value: unknown): boolean {
  if (key === 'echo') return true;
  return (key === 'best_of' && value === 1) || (key === 'suffix' && value === '');
}

/** `include_usage` is between the gateway and its client; obfuscation is a wish of the client's that only its own format can grant. */
function keepStreamOptions(body: JsonObject, extra: MutableObject): void {
  const options = optionalObject(body.stream_options, 'stream_options');
  if (options === undefined) return;
  const { include_usage, ...rest } = options;
  const usage = optionalBoolean(include_usage, 'stream_options.include_usage');
  extra.$stream_options = usage === undefined ? {} : { include_usage: usage };
  for (const key in rest) if (given(rest[key])) extra[`stream_options.${key}`] = rest[key];
}

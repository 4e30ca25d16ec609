/** Encodes chat completions requests to a provider. */
import type { ChatRequest } from '../../../model/chat.ts';
import { isObject, type JsonObject, type MutableObject } from '../../../model/json.ts';
import { objectsOf } from '../../_shared/fields.ts';
import { reportForeign } from '../../_shared/foreign.ts';
import { moved, writeSettings } from '../../_shared/settings.ts';
import type { EncodedRequest, EncodeTarget } from '../../../sdk/format.ts';
import { writeMessages } from './turns.ts';
import { writeTools } from './tools.ts';
import { putBack } from '../../_shared/extra.ts';
import { spelledReasoning, writeReasoning } from '../reasoning/write.ts';
import { handled, rows } from '../settings.ts';
import { formatName, own } from '../wire.ts';
import { scopeOf, undoing, type Scope } from '../../_openai/scope.ts';
import { serviceTiers, takes, writeStop, writeUserAndTier } from '../../_openai/settings.ts';
import { headersFor } from '../../_openai/headers.ts';
import { writeStream } from '../../_openai/stream.ts';
import { writeAnswerForm } from '../../_openai/response-format.ts';

/** Path of chat requests below the provider's base URL. */
export const chatPath = '/chat/completions';

/** Encodes a neutral request as the target's model accepts it. */
export function encodeRequest(request: ChatRequest, target: EncodeTarget): EncodedRequest {
  const scope = scopeOf(formatName, request, target);
  const body: MutableObject = { model: target.model };
  body.messages = writeMessages(request, scope);
  writeTools(request, body, scope);
  const unwrapTool = writeAllSettings(request, body, scope);
  putBack(body, restOf(request, body, target.drop), [
    'response_format.json_schema',
    'response_format',
    'reasoning',
    'thinking',
    'chat_template_kwargs',
    'stream_options',
  ]);
  reportForeign(request.extra, formatName, '', target.drop);
  writeStream(request, own(request.extra), body, target, formatName);
  return {
    path: chatPath,
    ...headersFor(target.headers),
    body,
    ...undoing(scope, unwrapTool),
  };
}

/** Returns the client's unknown fields, without those inside an object that is not sent. */
function restOf(request: ChatRequest, body: JsonObject, drop: (path: string) => void): JsonObject {
  const rest = own(request.extra);
  const gone = Object.keys(rest).filter((key) => {
    const root = /^(reasoning|thinking|stream_options|response_format)\./.exec(key)?.[1];
    return root !== undefined && root !== 'stream_options' && !isObject(body[root]);
  });
  if (gone.length === 0) return rest;
  gone.forEach((key) => drop(key));
  return Object.fromEntries(Object.entries(rest).filter(([key]) => !gone.includes(key)));
}

/** Returns the name of the tool that stands in for structured output, where one does. */
function writeAllSettings(request: ChatRequest, body: MutableObject, scope: Scope): string | undefined {
  const { settings } = request;
  const { target } = scope;
  const { refuses, ranges } = target.traits;
  writeSettings(settings, rows, body, { refuses, ranges, handled, drop: target.drop });
  if (
    settings.topLogprobs !== undefined &&
    settings.logprobs === undefined &&
    body.top_logprobs !== undefined
  )
    body.logprobs = true;
  if (own(request.extra).$modalities === 'string' && settings.modalities?.length === 1)
    body.modalities = settings.modalities[0];
  const unwrapTool = takes('responseFormat', settings, target)
    ? writeAnswerForm(settings.responseFormat, body, target, {
        attach: (format) => (body.response_format = format),
        named: scope.foreign,
        holder: 'json_schema',
        tool: (tool) => ({ type: 'function', function: tool }),
        choice: (name) => ({ type: 'function', function: { name } }),
        instruct: (text) => instruct(body, text, scope),
      })
    : undefined;
  if (takes('maxOutput', settings, target)) writeLimit(request, settings.maxOutput ?? 0, body, target);
  writeStop(settings, own(request.extra), body, scope);
  writeUserAndTier(settings, own(request.extra), body, scope, serviceTiers);
  encodeOptions(request, body, scope);
  return unwrapTool;
}

/** Adds instructions in a message before the first turn. */
function instruct(body: MutableObject, content: string, { target }: Scope): void {
  const messages = objectsOf(body.messages);
  const first = messages.findIndex(({ role }) => role !== 'system' && role !== 'developer');
  const index = first < 0 ? messages.length : first;
  const role = target.traits.systemRole ?? 'system';
  body.messages = [...messages.slice(0, index), { role, content }, ...messages.slice(index)];
}

/** Writes the output limit under the name in the model's traits, else under the client's name, else under the official one. */
function writeLimit(request: ChatRequest, limit: number, body: MutableObject, target: EncodeTarget): void {
  const marks = own(request.extra);
  const field =
    target.traits.outputLimitField ??
    (marks.$limit === 'max_tokens' ? 'max_tokens' : 'max_completion_tokens');
  // Zero is a messages request that only warms the cache.
  const taken = Math.max(1, moved(limit, target.traits.ranges?.maxOutput));
  if (taken !== limit) target.drop('settings.maxOutput');
  body[field] = taken;
  // The client sent both fields. If the effective one was changed, the other gets the same value.
  if (target.traits.outputLimitField === undefined && typeof marks.$max_tokens === 'number')
    body.max_tokens = limit === marks.$max_completion_tokens ? marks.$max_tokens : body[field];
}

function encodeOptions(request: ChatRequest, body: MutableObject, scope: Scope): void {
  const { reasoning } = request.settings;
  const { traits, drop } = scope.target;
  if (traits.refuses?.includes('reasoning') === true) {
    if (reasoning !== undefined) drop('settings.reasoning');
    return;
  }
  const spelled = spelledReasoning(own(request.extra).$reasoning, reasoning, traits);
  if (spelled !== undefined) Object.assign(body, spelled);
  else if (reasoning !== undefined) writeReasoning(reasoning, traits, body, drop);
  else if (isObject(own(request.extra).$reasoning)) dropSpelled(request, drop);
}

/** Reports members of the client's reasoning fields that have no neutral meaning, for a model that takes other fields. */
function dropSpelled({ extra }: ChatRequest, drop: (path: string) => void): void {
  const { $reasoning } = own(extra);
  for (const member of Object.keys(isObject($reasoning) ? $reasoning : {})) drop(member);
}

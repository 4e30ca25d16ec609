import type { ChatRequest, ChatSettings } from '../../../model/chat.ts';
import { isObject, type JsonObject } from '../../../model/json.ts';
import { toolNamesFor, wrappedTools } from '../../_shared/client-tools.ts';
import { loseForeign } from '../../_shared/foreign.ts';
import { writeSettings, type MutableObject } from '../../_shared/settings.ts';
import type { EncodedRequest, EncodeTarget } from '../../../sdk/format.ts';
import { writeMessages } from './turns.ts';
import type { Scope } from './parts.ts';
import { writeTools } from './tools.ts';
import { own } from '../extra.ts';
import { putBack } from '../../_shared/extra.ts';
import { spelledReasoning, writeReasoning } from '../reasoning/index.ts';
import { writeResponseFormat } from '../response-format.ts';
import { handled, mostStops, rows, serviceTiers } from '../settings.ts';
import { formatName } from '../wire.ts';

/** Where chat requests go, below the provider's base URL. */
export const chatPath = '/chat/completions';

/** The tool that stands in for structured output. */
const outputTool = 'json_output';

/** A neutral request in this format's words, as the target's model takes them. */
export function encodeRequest(request: ChatRequest, target: EncodeTarget): EncodedRequest {
  const foreign = request.format !== formatName;
  const names = toolNamesFor(request, target, foreign);
  const wrapped = wrappedTools(request, target);
  const scope: Scope = { target, foreign, names, wrapped };
  const body: MutableObject = { model: target.model };
  body.messages = writeMessages(request, scope);
  writeTools(request, body, scope);
  const unwrapTool = writeAllSettings(request, body, scope);
  putBack(body, restOf(request, body, target.lose), [
    'response_format.json_schema',
    'response_format',
    'reasoning',
    'thinking',
    'stream_options',
  ]);
  loseForeign(request.extra, formatName, '', target.lose);
  writeStream(request, body, target);
  return {
    path: chatPath,
    ...headersFor(target.headers),
    body,
    ...(names === undefined ? {} : { toolNames: names }),
    ...(wrapped.size === 0 ? {} : { customTools: [...wrapped] }),
    ...(unwrapTool === undefined ? {} : { unwrapTool }),
  };
}

/** Headers that travel between equals. */
export function headersFor(headers: Readonly<Record<string, string>>): {
  readonly headers?: Readonly<Record<string, string>>;
} {
  const beta = headers['openai-beta'];
  return beta === undefined || beta === '' ? {} : { headers: { 'openai-beta': beta } };
}

/** The client's unknown fields, without those inside an object that is not sent. */
function restOf(request: ChatRequest, body: JsonObject, lose: (path: string) => void): JsonObject {
  const rest = own(request.extra);
  const gone = Object.keys(rest).filter((key) => {
    const root = /^(reasoning|thinking|stream_options|response_format)\./.exec(key)?.[1];
    return root !== undefined && root !== 'stream_options' && !isObject(body[root]);
  });
  if (gone.length === 0) return rest;
  gone.forEach((key) => lose(key));
  return Object.fromEntries(Object.entries(rest).filter(([key]) => !gone.includes(key)));
}

/** Returns the name of the tool that stands in for structured output, where one does. */
function writeAllSettings(request: ChatRequest, body: MutableObject, scope: Scope): string | undefined {
  const { settings } = request;
  const { target } = scope;
  writeSettings(settings, rows, body, { refuses: target.traits.refuses, handled, lose: target.lose });
  if (
    settings.topLogprobs !== undefined &&
    settings.logprobs === undefined &&
    body.top_logprobs !== undefined
  )
    body.logprobs = true;
  if (own(request.extra).$modalities === 'string' && settings.modalities?.length === 1)
    body.modalities = settings.modalities[0];
  const unwrapTool = takes('responseFormat', settings, scope) ? writeFormat(request, body, scope) : undefined;
  if (takes('maxOutput', settings, scope)) writeLimit(request, settings.maxOutput ?? 0, body, target);
  if (takes('stop', settings, scope)) writeStop(request, settings.stop ?? [], body, scope);
  if (takes('user', settings, scope))
    body[own(request.extra).$user === 'safety_identifier' ? 'safety_identifier' : 'user'] = settings.user;
  if (takes('serviceTier', settings, scope)) writeTier(settings.serviceTier ?? '', body, scope);
  writeWishes(request, body, scope);
  return unwrapTool;
}

/** True when a setting that this file writes by itself is given and the model takes it. */
function takes(name: keyof ChatSettings, settings: ChatSettings, scope: Scope): boolean {
  if (settings[name] === undefined) return false;
  if (scope.target.traits.refuses?.includes(name) !== true) return true;
  scope.target.lose(`settings.${name}`);
  return false;
}

/** The output limit, under the name that the model's traits state, else the client's own, else the official one. */
function writeLimit(request: ChatRequest, limit: number, body: MutableObject, target: EncodeTarget): void {
  const marks = own(request.extra);
  const field =
    target.traits.outputLimitField ??
    (marks.$limit === 'max_tokens' ? 'max_tokens' : 'max_completion_tokens');
  // Zero is a messages request that only warms the cache.
  if (limit < 1) target.lose('settings.maxOutput');
  body[field] = Math.max(1, limit);
  // The client wrote both. Once the one that counts was changed, none is left that says otherwise.
  if (target.traits.outputLimitField === undefined && typeof marks.$max_tokens === 'number')
    body.max_tokens = limit === marks.$max_completion_tokens ? marks.$max_tokens : body[field];
}

function writeStop(request: ChatRequest, stop: readonly string[], body: MutableObject, scope: Scope): void {
  if (own(request.extra).$stop === 'string' && stop.length === 1) {
    body.stop = stop[0];
    return;
  }
  if (scope.foreign && stop.length > mostStops) scope.target.lose('settings.stop');
  if (stop.length > 0 || !scope.foreign) body.stop = scope.foreign ? stop.slice(0, mostStops) : stop;
}

function writeTier(tier: string, body: MutableObject, scope: Scope): void {
  if (scope.foreign && !serviceTiers.has(tier)) scope.target.lose('settings.serviceTier');
  else body.service_tier = tier;
}

function writeWishes(request: ChatRequest, body: MutableObject, scope: Scope): void {
  const { reasoning } = request.settings;
  const { traits, lose } = scope.target;
  if (traits.refuses?.includes('reasoning') === true) {
    if (reasoning !== undefined) lose('settings.reasoning');
    return;
  }
  const spelled = spelledReasoning(own(request.extra).$reasoning, reasoning, traits);
  if (spelled !== undefined) Object.assign(body, spelled);
  else if (reasoning !== undefined) writeReasoning(reasoning, traits, body, lose);
}

function writeFormat(request: ChatRequest, body: MutableObject, scope: Scope): string | undefined {
  const format = request.settings.responseFormat;
  if (format === undefined) return undefined;
  const { target } = scope;
  if (format.type !== 'json-schema' || target.traits.jsonSchema !== false) {
    body.response_format = writeResponseFormat(format, scope.foreign);
    return undefined;
  }
  if (format.schema !== undefined && body.tools === undefined && body.tool_choice === undefined) {
    const description = format.description ?? 'Gives the answer in the required form.';
    body.tools = [
      { type: 'function', function: { name: outputTool, description, parameters: format.schema } },
    ];
    body.tool_choice = { type: 'function', function: { name: outputTool } };
    return outputTool;
  }
  target.lose('settings.responseFormat');
  body.response_format = { type: 'json_object' };
  return undefined;
}

/** A stream begun for a client of another format (or for one that wants no stream) always tells its usage. */
function writeStream(request: ChatRequest, body: MutableObject, target: EncodeTarget): void {
  const { $stream, $stream_options } = own(request.extra);
  const told = isObject($stream_options) ? $stream_options : undefined;
  const options: JsonObject = { ...told, ...(isObject(body.stream_options) ? body.stream_options : {}) };
  const asClient = request.format === formatName && request.stream === target.stream;
  delete body.stream_options;
  if (target.stream) body.stream = true;
  else if ($stream === false) body.stream = false;
  if (!asClient && target.stream) body.stream_options = { ...options, include_usage: true };
  else if (asClient && told !== undefined) body.stream_options = options;
}

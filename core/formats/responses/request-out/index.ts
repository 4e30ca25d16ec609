import { isDeepStrictEqual } from 'node:util';
import { GatewayError } from '../../../sdk/errors.ts';
import type { ChatRequest, ChatSettings } from '../../../model/chat.ts';
import { isObject, type JsonObject, type JsonValue } from '../../../model/json.ts';
import { toolNamesFor, wrappedTools } from '../../_shared/client-tools.ts';
import { loseForeign } from '../../_shared/foreign.ts';
import { writeSettings, type MutableObject } from '../../_shared/settings.ts';
import type { EncodedRequest, EncodeTarget } from '../../../sdk/format.ts';
import { encryptedWord, logprobsWord } from '../request-in/index.ts';
import { writeInput } from './turns.ts';
import type { Scope } from './parts.ts';
import { toolsAsWritten, writeTools } from './tools.ts';
import { marked, own } from '../extra.ts';
import { putBack } from '../../_shared/extra.ts';
import { reasoningMembers, reasons, writeReasoning } from '../reasoning.ts';
import { writeResponseFormat } from '../response-format.ts';
import { handled, rows, serviceTiers } from '../settings.ts';
import { formatName } from '../wire.ts';

/** The tool that stands in for structured output. */
const outputTool = 'json_output';
/** The least output limit that the official API takes. */
const leastOutput = 16;
/** The settings that change what a request's input weighs. */
const counted: readonly (keyof ChatSettings)[] = [
  'responseFormat',
  'verbosity',
  'reasoning',
  'parallelTools',
];

/** Where a request goes that passes through. */
export function passThrough(
  operation: ChatRequest['operation'],
  headers: Readonly<Record<string, string>>,
): Omit<EncodedRequest, 'body'> {
  const path = operation === 'count-tokens' ? '/responses/input_tokens' : '/responses';
  // The header travels between equals.
  const beta = headers['openai-beta'];
  return beta === undefined || beta === '' ? { path } : { path, headers: { 'openai-beta': beta } };
}

/** A neutral request in this format's words, as the target's model takes them. */
export function encodeRequest(request: ChatRequest, target: EncodeTarget): EncodedRequest {
  const foreign = request.format !== formatName;
  const names = toolNamesFor(request, target, foreign);
  const wrapped = wrappedTools(request, target);
  const scope: Scope = { target, foreign, names, wrapped };
  refuseChoices(request);
  const counting = request.operation === 'count-tokens' && foreign;
  const settings = counting ? only(request.settings, counted) : request.settings;
  const body: MutableObject = { model: target.model };
  Object.assign(body, writeInput(request, asidesOf(request, settings, scope), scope));
  writeTools(request, body, scope);
  const unwrapTool = writeAllSettings(request, settings, body, scope);
  Object.assign(body, own(request.extra).$kept);
  const { $truncation } = own(request.extra);
  if ($truncation !== undefined) body.truncation = $truncation;
  const { include: _, ...fields } = own(request.extra);
  putBack(body, fields);
  for (const path in fields) if (path.startsWith('instructions.')) target.lose(path);
  loseForeign(request.extra, formatName, '', target.lose);
  if (!counting) writeStream(request, body, scope);
  return {
    ...passThrough(request.operation, target.headers),
    body,
    ...(names === undefined ? {} : { toolNames: names }),
    ...(wrapped.size === 0 ? {} : { customTools: [...wrapped] }),
    ...(unwrapTool === undefined ? {} : { unwrapTool }),
  };
}

/** The format gives one answer. */
function refuseChoices({ settings }: ChatRequest): void {
  if (settings.choices === undefined || settings.choices <= 1) return;
  throw new GatewayError(
    'unsupported_value',
    `settings.choices must be 1: a ${formatName} channel gives one answer.`,
    { param: 'settings.choices' },
  );
}

function only(settings: ChatSettings, names: readonly (keyof ChatSettings)[]): ChatSettings {
  return Object.fromEntries(
    names.filter((name) => settings[name] !== undefined).map((name) => [name, settings[name]]),
  );
}

/** The items that are no turns, without what they would say against settings that were changed on the way. */
function asidesOf(request: ChatRequest, settings: ChatSettings, scope: Scope): readonly JsonObject[] {
  const { $asides } = own(request.extra);
  const list = Array.isArray($asides) ? ($asides as readonly JsonValue[]).filter(isObject) : [];
  const kept: JsonObject[] = [];
  for (const aside of list) {
    const { index, item } = aside;
    if (!isObject(item) || (item.type === 'additional_tools' && !toolsAsWritten(scope))) continue;
    const { reasoning, text, ...rest } = item;
    const update: MutableObject = { ...rest };
    if (reasoning !== undefined && wishStands(request, settings, scope)) update.reasoning = reasoning;
    if (text !== undefined && formatStands(request, settings, scope)) update.text = text;
    kept.push({ index, item: item.type === 'configuration_update' ? update : item });
  }
  return kept;
}

/** Returns the name of the tool that stands in for structured output, where one does. */
function writeAllSettings(
  request: ChatRequest,
  settings: ChatSettings,
  body: MutableObject,
  scope: Scope,
): string | undefined {
  const { target, foreign } = scope;
  const low = foreign && settings.maxOutput !== undefined && settings.maxOutput < leastOutput;
  if (low) target.lose('settings.maxOutput');
  const limited = low ? { ...settings, maxOutput: leastOutput } : settings;
  writeSettings(limited, rows, body, { refuses: target.traits.refuses, handled, lose: target.lose });
  if (takes('user', settings, scope))
    body[own(request.extra).$user === 'safety_identifier' ? 'safety_identifier' : 'user'] = settings.user;
  if (takes('serviceTier', settings, scope)) writeTier(settings.serviceTier ?? '', body, scope);
  writeWish(request, settings, body, scope);
  const unwrapTool = writeText(request, settings, body, scope);
  writeInclude(request, settings, body, scope);
  return unwrapTool;
}

/** True when a setting that this file writes by itself is given and the model takes it. */
function takes(name: keyof ChatSettings, settings: ChatSettings, { target }: Scope): boolean {
  if (settings[name] === undefined) return false;
  if (target.traits.refuses?.includes(name) !== true) return true;
  target.lose(`settings.${name}`);
  return false;
}

function writeTier(tier: string, body: MutableObject, scope: Scope): void {
  if (scope.foreign && !serviceTiers.has(tier)) scope.target.lose('settings.serviceTier');
  else body.service_tier = tier;
}

/** True when `reasoning` can go as the client of this format wrote it. */
function wishStands(request: ChatRequest, { reasoning }: ChatSettings, { target, foreign }: Scope): boolean {
  const { traits } = target;
  if (foreign || traits.refuses?.includes('reasoning') === true || traits.reasoning === 'none') return false;
  const effort = reasoning?.effort;
  if (effort !== undefined && traits.efforts?.includes(effort) === false) return false;
  return isDeepStrictEqual({ ...reasoning }, marked(request, '$wish'));
}

function writeWish(request: ChatRequest, settings: ChatSettings, body: MutableObject, scope: Scope): void {
  const { $reasoning } = own(request.extra);
  if (wishStands(request, settings, scope)) {
    if ($reasoning !== undefined) body.reasoning = $reasoning;
    return;
  }
  const { reasoning } = settings;
  const written =
    reasoning === undefined ? undefined : writeReasoning(reasoning, scope.target.traits, scope.target.lose);
  if (written !== undefined) body.reasoning = { ...without($reasoning, reasoningMembers), ...written };
}

function without(object: JsonValue | undefined, names: ReadonlySet<string>): JsonObject {
  return isObject(object)
    ? Object.fromEntries(Object.entries(object).filter(([name]) => !names.has(name)))
    : {};
}

/** True when `text.format` can go as the client of this format wrote it. */
function formatStands(request: ChatRequest, { responseFormat }: ChatSettings, scope: Scope): boolean {
  const { traits } = scope.target;
  if (scope.foreign || traits.refuses?.includes('responseFormat') === true) return false;
  if (traits.jsonSchema === false && responseFormat?.type === 'json-schema') return false;
  return isDeepStrictEqual({ ...responseFormat }, marked(request, '$format'));
}

const textMembers: ReadonlySet<string> = new Set(['format', 'verbosity']);

/** Returns the name of the tool that stands in for structured output, where one does. */
function writeText(
  request: ChatRequest,
  settings: ChatSettings,
  body: MutableObject,
  scope: Scope,
): string | undefined {
  const held = marked(request, '$text');
  const text: MutableObject = { ...without(held, textMembers) };
  let unwrapTool: string | undefined;
  if (formatStands(request, settings, scope)) {
    if (held.format !== undefined && held.format !== null) text.format = held.format;
  } else if (takes('responseFormat', settings, scope)) {
    unwrapTool = writeFormat(settings, text, body, scope);
  }
  if (takes('verbosity', settings, scope)) text.verbosity = settings.verbosity;
  if (Object.keys(text).length > 0 || own(request.extra).$text !== undefined) body.text = text;
  return unwrapTool;
}

function writeFormat(
  { responseFormat: format }: ChatSettings,
  text: MutableObject,
  body: MutableObject,
  { target }: Scope,
): string | undefined {
  if (format === undefined) return undefined;
  if (format.type !== 'json-schema' || target.traits.jsonSchema !== false) {
    const written = writeResponseFormat(format);
    if (format.name !== undefined && written.name !== format.name)
      target.lose('settings.responseFormat.name');
    text.format = written;
    return undefined;
  }
  if (format.schema !== undefined && body.tools === undefined && body.tool_choice === undefined) {
    const description = format.description ?? 'Gives the answer in the required form.';
    body.tools = [
      { type: 'function', name: outputTool, description, parameters: format.schema, strict: false },
    ];
    body.tool_choice = { type: 'function', name: outputTool };
    return outputTool;
  }
  target.lose('settings.responseFormat');
  text.format = { type: 'json_object' };
  return undefined;
}

/** Sealed reasoning is asked for where the provider keeps nothing, so that the next turn can bring it. */
function writeInclude(request: ChatRequest, settings: ChatSettings, body: MutableObject, scope: Scope): void {
  const { $include } = own(request.extra);
  const words = Array.isArray($include) ? ($include as readonly JsonValue[]) : [];
  const ranked = settings.topLogprobs !== undefined && scope.foreign;
  const logprobs = takes('logprobs', settings, scope)
    ? settings.logprobs === true
    : ranked && settings.logprobs === undefined;
  const list = logprobs ? [...words] : words.filter((word) => word !== logprobsWord);
  if (logprobs && !list.includes(logprobsWord)) list.push(logprobsWord);
  const counting = request.operation === 'count-tokens';
  if (scope.foreign && !counting && reasons(settings.reasoning, scope.target.traits))
    list.push(encryptedWord);
  if (list.length > 0 || words.length > 0 || $include !== undefined) body.include = list;
}

/** For a client of another format nothing is kept at the provider: it did not ask for that. */
function writeStream(request: ChatRequest, body: MutableObject, { target, foreign }: Scope): void {
  const { $stream, $stream_options } = own(request.extra);
  if (foreign) body.store = false;
  if (request.operation === 'count-tokens') return;
  if (target.stream) body.stream = true;
  else if ($stream === false) body.stream = false;
  if (
    isObject($stream_options) &&
    Object.keys($stream_options).length > 0 &&
    request.stream === target.stream
  )
    body.stream_options = $stream_options;
}

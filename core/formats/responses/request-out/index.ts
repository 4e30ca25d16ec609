/** Encodes Responses requests and requests for their input token counts. */
import { isDeepStrictEqual } from 'node:util';
import type { ChatRequest, ChatSettings } from '../../../model/chat.ts';
import { isObject, type JsonObject, type MutableObject } from '../../../model/json.ts';
import { given } from '../../_shared/check.ts';
import { reportForeign } from '../../_shared/foreign.ts';
import { writeSettings } from '../../_shared/settings.ts';
import type { EncodedRequest, EncodeTarget } from '../../../sdk/format.ts';
import { encryptedWord, logprobsWord } from '../request-in/index.ts';
import { writeInput } from './turns.ts';
import { toolsAsWritten, writeTools } from './tools.ts';
import { putBack } from '../../_shared/extra.ts';
import { reasoningMembers, reasons, writeReasoning } from '../reasoning.ts';
import { handled, rows, tiers } from '../settings.ts';
import { formatName, kept, own } from '../wire.ts';
import { refuseChoices } from '../../_shared/refuse.ts';
import { scopeOf, undoing, type Scope } from '../../_openai/scope.ts';
import { headersFor } from '../../_openai/headers.ts';
import { adaptSchema } from '../../_shared/json-schema/adapt.ts';
import { writeAnswerForm } from '../../_openai/response-format.ts';
import { takes, writeUserAndTier } from '../../_openai/settings.ts';
import { defined, fieldsBeside, listOf, objectsOf, setOf } from '../../_shared/fields.ts';

/** The least output limit that the official API takes. */
const leastOutput = 16;
/** Settings that change the number of input tokens. */
const counted: readonly (keyof ChatSettings)[] = [
  'responseFormat',
  'verbosity',
  'reasoning',
  'parallelTools',
];

/** Returns the path and the headers of a request that passes through. */
export function passThrough(
  operation: ChatRequest['operation'],
  headers: Readonly<Record<string, string>>,
): Omit<EncodedRequest, 'body'> {
  const path = operation === 'count-tokens' ? '/responses/input_tokens' : '/responses';
  return { path, ...headersFor(headers) };
}

/** Encodes a neutral request as the target's model accepts it. */
export function encodeRequest(whole: ChatRequest, target: EncodeTarget): EncodedRequest {
  const scope = scopeOf(formatName, whole, target);
  refuseChoices(whole, formatName);
  const counting = whole.operation === 'count-tokens' && scope.foreign;
  const request = counting ? { ...whole, settings: only(whole.settings, counted) } : whole;
  const body: MutableObject = { model: target.model };
  Object.assign(body, writeInput(request, asidesOf(request, scope), scope));
  writeTools(request, body, scope);
  const unwrapTool = writeAllSettings(request, body, scope);
  Object.assign(body, own(request.extra).$kept);
  const { $truncation } = own(request.extra);
  if ($truncation !== undefined) body.truncation = $truncation;
  const { include: _, ...fields } = own(request.extra);
  putBack(body, fields);
  for (const path in fields) if (path.startsWith('instructions.')) target.drop(path);
  reportForeign(request.extra, formatName, '', target.drop);
  if (!counting) writeStream(request, body, scope);
  return {
    ...passThrough(request.operation, target.headers),
    body,
    ...undoing(scope, unwrapTool),
  };
}

function only(settings: ChatSettings, names: readonly (keyof ChatSettings)[]): ChatSettings {
  return defined(Object.fromEntries(names.map((name) => [name, settings[name]])));
}

/** Returns the items that are no turns, without members that would override settings that were changed. */
function asidesOf(request: ChatRequest, scope: Scope): readonly JsonObject[] {
  return objectsOf(own(request.extra).$asides).flatMap((aside) => {
    const { index, item } = aside;
    if (!isObject(item) || (item.type === 'additional_tools' && !toolsAsWritten(scope))) return [];
    if (item.type !== 'configuration_update') return [aside];
    const { reasoning, text, ...rest } = item;
    const update: MutableObject = { ...rest };
    if (reasoning !== undefined && reasoningIsUnchanged(request, scope)) update.reasoning = reasoning;
    if (text !== undefined && formatStands(request, scope)) update.text = text;
    return [{ index, item: update }];
  });
}

/** Returns the name of the tool that stands in for structured output, where one does. */
function writeAllSettings(request: ChatRequest, body: MutableObject, scope: Scope): string | undefined {
  const { settings } = request;
  const { target, foreign } = scope;
  const low = foreign && settings.maxOutput !== undefined && settings.maxOutput < leastOutput;
  if (low) target.drop('settings.maxOutput');
  const limited = low ? { ...settings, maxOutput: leastOutput } : settings;
  const { refuses, ranges } = target.traits;
  writeSettings(limited, rows, body, { refuses, ranges, handled, drop: target.drop });
  writeUserAndTier(settings, own(request.extra), body, scope, tiers);
  writeReasoningOptions(request, body, scope);
  const unwrapTool = writeText(request, body, scope);
  writeInclude(request, body, scope);
  return unwrapTool;
}

/** Returns true when `reasoning` can be sent as the client of this format spelled it. */
function reasoningIsUnchanged(request: ChatRequest, { target, foreign }: Scope): boolean {
  const { reasoning } = request.settings;
  const { traits } = target;
  if (foreign || traits.refuses?.includes('reasoning') === true || traits.reasoning === 'none') return false;
  const effort = reasoning?.effort;
  if (effort !== undefined && traits.efforts?.includes(effort) === false) return false;
  return isDeepStrictEqual({ ...reasoning }, kept(request.extra, '$wish') ?? {});
}

function writeReasoningOptions(request: ChatRequest, body: MutableObject, scope: Scope): void {
  const { $reasoning } = own(request.extra);
  if (reasoningIsUnchanged(request, scope)) {
    if ($reasoning !== undefined) body.reasoning = $reasoning;
    return;
  }
  const { traits, drop } = scope.target;
  const { reasoning } = request.settings;
  const written = reasoning && writeReasoning(reasoning, traits, drop);
  if (written === undefined) return;
  const held = isObject($reasoning) ? $reasoning : {};
  body.reasoning = { ...fieldsBeside(held, reasoningMembers), ...written };
}

/** Returns true when `text.format` can be sent as the client of this format spelled it. */
function formatStands(request: ChatRequest, scope: Scope): boolean {
  const { responseFormat } = request.settings;
  const { traits } = scope.target;
  if (scope.foreign || traits.refuses?.includes('responseFormat') === true) return false;
  if (traits.jsonSchema === false && responseFormat?.type === 'json-schema') return false;
  const { schema, strict } = responseFormat ?? {};
  if (strict === true && schema !== undefined && traits.schemaSubset !== undefined)
    if (adaptSchema(schema, traits.schemaSubset, { drop: () => {} }) !== schema) return false;
  return isDeepStrictEqual({ ...responseFormat }, kept(request.extra, '$format') ?? {});
}

const textMembers = setOf('format verbosity');

/** Returns the name of the tool that stands in for structured output, where one does. */
function writeText(request: ChatRequest, body: MutableObject, scope: Scope): string | undefined {
  const { settings } = request;
  const held = kept(request.extra, '$text') ?? {};
  const text = fieldsBeside(held, textMembers);
  let unwrapTool: string | undefined;
  if (formatStands(request, scope)) {
    if (given(held.format)) text.format = held.format;
  } else if (takes('responseFormat', settings, scope.target)) {
    unwrapTool = writeAnswerForm(settings.responseFormat, body, scope.target, {
      attach: (format) => (text.format = format),
      // A name is required: one is given where the client had none.
      named: true,
      tool: (tool) => ({ type: 'function', ...tool, strict: false }),
      choice: (name) => ({ type: 'function', name }),
      instruct(instruction) {
        body.instructions =
          typeof body.instructions === 'string' ? `${body.instructions}\n\n${instruction}` : instruction;
      },
    });
  }
  if (takes('verbosity', settings, scope.target)) text.verbosity = settings.verbosity;
  if (Object.keys(text).length > 0 || own(request.extra).$text !== undefined) body.text = text;
  return unwrapTool;
}

/** Encodes `include`. Requests encrypted reasoning where the provider stores nothing, so that the next turn can return it. */
function writeInclude(request: ChatRequest, body: MutableObject, scope: Scope): void {
  const { settings } = request;
  const { $include } = own(request.extra);
  const words = listOf($include);
  const ranked = settings.topLogprobs !== undefined && scope.foreign;
  const logprobs = takes('logprobs', settings, scope.target)
    ? settings.logprobs === true
    : ranked && settings.logprobs === undefined;
  const list = logprobs ? [...words] : words.filter((word) => word !== logprobsWord);
  if (logprobs && !list.includes(logprobsWord)) list.push(logprobsWord);
  const counting = request.operation === 'count-tokens';
  if (scope.foreign && !counting && reasons(settings.reasoning, scope.target.traits))
    list.push(encryptedWord);
  if (list.length > 0 || $include !== undefined) body.include = list;
}

/** Encodes `stream`, `stream_options` and `store`, which is false for clients of other formats because they did not ask for storage. */
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

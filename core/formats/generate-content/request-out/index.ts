/** Encodes generateContent and streamGenerateContent requests to a provider. */
import { answerTool } from '../../_shared/answer-form.ts';
import { refuse } from '../../_shared/writing.ts';
import type { ChatRequest, ChatSettings, Message } from '../../../model/chat.ts';
import type { ModelTraits } from '../../../model/traits.ts';
import { isObject, type JsonObject, type MutableObject } from '../../../model/json.ts';
import { reportForeign } from '../../_shared/foreign.ts';
import { moved, putAt, writeSettings } from '../../_shared/settings.ts';
import { effortOf } from '../../_shared/reasoning.ts';
import { takesOff } from '../../../model/thinks.ts';
import type { EncodedRequest, EncodeTarget } from '../../../sdk/format.ts';
import { writeContents } from './turns.ts';
import { encodeBlock } from './parts.ts';
import { encodeToolConfig, encodeTools } from './tools.ts';
import { startWriting, type Writing } from './scope.ts';
import { objectAt, putBack } from '../../_shared/extra.ts';
import { writeReasoning } from '../reasoning.ts';
import { writeResponseFormat } from '../response-format.ts';
import { respelled, rows, writeAsWritten } from '../settings.ts';
import { formatName, own } from '../wire.ts';

/** Most stop sequences that the provider takes. */
const stopLimit = 5;

/** Encodes a neutral request. */
export function encodeRequest(request: ChatRequest, target: EncodeTarget): EncodedRequest {
  const writing = startWriting(request, target);
  const body = encodeBody(request, writing);
  const unwrapTool = forceAnswer(body, request, writing);
  return {
    ...methodPath(target.model, target.stream ? 'streamGenerateContent' : 'generateContent'),
    body,
    ...writing.undoing(writing.customTools, unwrapTool),
  };
}

/** Returns the path of a model's method. The id is encoded as one path segment, so that none of its characters can change the path. */
export function methodPath(model: string, method: string): Omit<EncodedRequest, 'body'> {
  const tuned = model.startsWith('tunedModels/');
  const id = encodeURIComponent(model.replace(/^(?:tunedModels|models)\//, ''));
  const path = `/${tuned ? 'tunedModels' : 'models'}/${id}:${method}`;
  return method === 'streamGenerateContent' ? { path, query: { alt: 'sse' } } : { path };
}

/** Encodes the members of the body that chat and other operations share. */
export function encodeBody(request: ChatRequest, writing: Writing): MutableObject {
  const { target } = writing;
  const fields = own(request.extra);
  reportForeign(request.extra, formatName, '', target.drop);
  const body: MutableObject = {};
  if (typeof fields.$model === 'string') body.model = fields.$model + target.model.replace(/^models\//, '');
  const instructions = encodeSystem(request.system, writing);
  const contents = writeContents(request.messages, writing);
  const voiceless = !writing.native && !contents.some(({ role }) => role === 'user');
  if (voiceless && instructions !== undefined) contents.unshift({ ...instructions, role: 'user' });
  else if (instructions !== undefined) body.systemInstruction = instructions;
  body.contents = contents;
  encodeTools(body, request, writing);
  encodeToolConfig(body, request, writing);
  encodeSettings(body, request, writing);
  putBack(body, fields, [
    'generationConfig.thinkingConfig',
    'generationConfig',
    'toolConfig.functionCallingConfig',
    'toolConfig',
  ]);
  for (const path of ['generationConfig', 'generationConfig.thinkingConfig'])
    if (fields[`$${path}`] === 'empty') objectAt(body, path);
  return body;
}

function encodeSystem(system: readonly Message[], writing: Writing): MutableObject | undefined {
  const parts: MutableObject[] = [];
  const content: MutableObject = {};
  for (const message of system) {
    reportForeign(message.extra, formatName, message.at, writing.target.drop);
    if (message.cache !== undefined) writing.target.drop(`${message.at}.cache`);
    const fields = own(message.extra);
    if (typeof fields.$role === 'string') content.role = fields.$role;
    putBack(content, fields);
    for (const block of message.content) {
      if (block.type !== 'text' && !writing.native)
        refuse(block, 'anything but text as an instruction', writing);
      else for (const part of encodeBlock(block, writing)) parts.push(part);
    }
  }
  if (system.length === 0 || (parts.length === 0 && !writing.native)) return undefined;
  return { ...content, parts };
}

function encodeSettings(body: MutableObject, request: ChatRequest, writing: Writing): void {
  const { native, target } = writing;
  const { settings } = request;
  const fields = own(request.extra);
  const handled = new Set<string>(respelled.map((row) => row.name));
  const { stop } = settings;
  const long = !native && stop !== undefined && stop.length > stopLimit;
  if (long) target.drop('settings.stop');
  const { refuses } = target.traits;
  const plain = long ? { ...settings, stop: stop.slice(0, stopLimit) } : settings;
  writeSettings(plain, rows, body, { refuses, ranges: target.traits.ranges, handled, drop: target.drop });
  for (const row of respelled) {
    const value = settings[row.name];
    if (value !== undefined && refuses?.includes(row.name)) {
      target.drop(`settings.${row.name}`);
      continue;
    }
    if (
      native &&
      standsAsWritten(row.name, settings, target.traits) &&
      writeAsWritten(body, settings, fields, row)
    )
      continue;
    if (value === undefined) continue;
    if (row.write === undefined) writeForModel(body, request, writing, row.name);
    else {
      const written = row.write(value as Parameters<typeof row.write>[0]);
      const path = row.paths[0];
      if (written === undefined || path === undefined) target.drop(`settings.${row.name}`);
      else putAt(body, path, written);
    }
  }
}

/** Returns true when a model with these traits accepts the setting as a client of this format spelled it. */
function standsAsWritten(
  name: string,
  { reasoning, responseFormat }: ChatSettings,
  traits: ModelTraits,
): boolean {
  if (name === 'responseFormat') return traits.jsonSchema !== false || responseFormat?.type !== 'json-schema';
  if (name !== 'reasoning' || traits.reasoning === undefined || reasoning === undefined) return true;
  const { effort, budget = 0 } = reasoning;
  if (effort !== undefined && traits.efforts?.includes(effort) === false) return false;
  if (effortOf(reasoning) === 'none' && !takesOff(traits)) return false;
  if (budget > 0 && moved(budget, traits.thinkingBudget) !== budget) return false;
  // Models with levels take budgets too: https://ai.google.dev/gemini-api/docs/thinking
  return traits.reasoning === 'level' || (traits.reasoning === 'budget' && effort === undefined);
}

/** Encodes the settings whose form depends on the model. */
function writeForModel(body: MutableObject, request: ChatRequest, { target }: Writing, name: string): void {
  const { reasoning, responseFormat } = request.settings;
  if (name === 'reasoning' && reasoning !== undefined) {
    // Clients of Responses request a summary themselves. Clients of other formats always get thoughts.
    const showByDefault = request.format !== 'responses' && request.format !== formatName;
    const config = writeReasoning({ reasoning, traits: target.traits, showByDefault, drop: target.drop });
    if (config !== undefined) putAt(body, 'generationConfig.thinkingConfig', config);
  }
  if (name !== 'responseFormat' || responseFormat === undefined) return;
  if (target.traits.jsonSchema === false && responseFormat.type === 'json-schema') return;
  writeResponseFormat(body, responseFormat, target.traits, target.drop);
}

/** Requests structured output from a model that has none, with a function that must be called, if the client sent no functions. */
function forceAnswer(body: MutableObject, request: ChatRequest, { target }: Writing): string | undefined {
  const { responseFormat } = request.settings;
  const { jsonSchema, forcedTools, refuses } = target.traits;
  if (jsonSchema !== false || responseFormat?.type !== 'json-schema') return undefined;
  if (refuses?.includes('responseFormat') === true) return undefined;
  if (body.tools !== undefined || !isObject(responseFormat.schema) || forcedTools === 'never') {
    target.drop('settings.responseFormat');
    return undefined;
  }
  const scratch: MutableObject = {};
  writeResponseFormat(scratch, responseFormat, target.traits, target.drop);
  const config = scratch.generationConfig as JsonObject;
  const schema =
    config.responseJsonSchema === undefined
      ? { parameters: config.responseSchema }
      : { parametersJsonSchema: config.responseJsonSchema };
  const description = 'Gives the answer in the form that was asked for.';
  body.tools = [{ functionDeclarations: [{ name: answerTool, description, ...schema }] }];
  putAt(body, 'toolConfig.functionCallingConfig', { mode: 'ANY', allowedFunctionNames: [answerTool] });
  return answerTool;
}

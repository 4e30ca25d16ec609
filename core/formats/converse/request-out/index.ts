/** Encodes Converse, ConverseStream and CountTokens requests to a provider. */
import type { ChatRequest } from '../../../model/chat.ts';
import type { JsonObject, MutableObject } from '../../../model/json.ts';
import { reportForeign } from '../../_shared/foreign.ts';
import { refuseChoices } from '../../_shared/refuse.ts';
import { writeSettings } from '../../_shared/settings.ts';
import { visibleStops, writingOf } from '../../_shared/writing.ts';
import type { EncodedRequest, EncodeTarget } from '../../../sdk/format.ts';
import { writeReasoning } from '../reasoning.ts';
import { formatPlaces, writeResponseFormat } from '../response-format.ts';
import { knownFields, settingRows } from '../settings.ts';
import { formatName, own } from '../wire.ts';
import type { Writing } from './scope.ts';
import { encodeTools } from './tools.ts';
import { encodeHistory } from './turns.ts';
import { putBack } from '../../_shared/extra.ts';
import { setOf } from '../../_shared/fields.ts';

/** The longest tool name of the format. */
const nameLimit = 64;
/** Settings that are written elsewhere, and the number of answers: one is what there is anyway. */
const handled = setOf('reasoning responseFormat parallelTools choices');

/** Encodes a request. Throws 400 for content and tools that the format cannot carry. */
export function encodeRequest(request: ChatRequest, target: EncodeTarget): EncodedRequest {
  const writing: Writing = { ...writingOf(formatName, request, target, nameLimit), documents: new Map() };
  reportForeign(request.extra, formatName, undefined, target.drop);
  refuseChoices(request, formatName);
  const body: MutableObject = { ...encodeHistory(request, writing) };
  const customTools = encodeTools(body, request, writing);
  const { refuses, ranges } = target.traits;
  writeSettings(request.settings, settingRows, body, { refuses, ranges, handled, drop: target.drop });
  if (!writing.native) dropBlankStops(body, writing);
  const unwrapTool = writeResponseFormat(request, body, target);
  writeThinking(request, body, target);
  restoreTop(body, own(request.extra));
  return {
    ...(request.operation === 'count-tokens' ? counted(target, body) : { path: chatPath(target), body }),
    ...writing.undoing(customTools, unwrapTool),
  };
}

/** Returns the path of a model's method. The name is encoded because it may be an ARN with slashes and colons. */
export function modelPath(model: string, method: string): string {
  return `/model/${encodeURIComponent(model)}/${method}`;
}

function chatPath({ model, stream }: EncodeTarget): string {
  return modelPath(model, stream ? 'converse-stream' : 'converse');
}

/** Encodes a request for a token count, which has no settings. */
function counted({ model }: EncodeTarget, body: JsonObject): Pick<EncodedRequest, 'path' | 'body'> {
  const { messages, system, toolConfig, additionalModelRequestFields } = body;
  const converse: MutableObject = { messages };
  if (system !== undefined) converse.system = system;
  if (toolConfig !== undefined) converse.toolConfig = toolConfig;
  if (additionalModelRequestFields !== undefined)
    converse.additionalModelRequestFields = additionalModelRequestFields;
  return { path: modelPath(model, 'count-tokens'), body: { input: { converse } } };
}

function dropBlankStops(body: MutableObject, writing: Writing): void {
  const config = body.inferenceConfig as MutableObject | undefined;
  if (config?.stopSequences === undefined) return;
  const stops = visibleStops(config.stopSequences, writing);
  if (stops === undefined) delete config.stopSequences;
  else config.stopSequences = stops;
}

function writeThinking({ settings, extra }: ChatRequest, body: MutableObject, target: EncodeTarget): void {
  if (settings.reasoning === undefined) return;
  const { traits, drop } = target;
  writeReasoning(body, settings.reasoning, own(extra), { traits, maxOutput: settings.maxOutput, drop });
}

/** Writes back what only this format knows of the top level. */
function restoreTop(body: MutableObject, kept: JsonObject): void {
  putBack(body, kept, [
    ...formatPlaces,
    'additionalModelRequestFields.thinking',
    ...Object.keys(knownFields),
    'toolConfig',
  ]);
  for (const field of [...Object.keys(knownFields), 'toolConfig'])
    if (kept[`$${field}`] === 'empty') body[field] ??= {};
}

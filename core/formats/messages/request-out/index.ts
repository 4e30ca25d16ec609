import type { ChatRequest } from '../../../model/chat.ts';
import { isObject, type JsonObject, type MutableObject } from '../../../model/json.ts';
import { fieldsBeside, setOf } from '../../_shared/fields.ts';
import { reportForeign } from '../../_shared/foreign.ts';
import { writeSettings } from '../../_shared/settings.ts';
import { visibleStops, writingOf } from '../../_shared/writing.ts';
import type { EncodedRequest, EncodeTarget } from '../../../sdk/format.ts';
import { encodeHistory } from './turns.ts';
import { encodeTools } from './tools.ts';
import { writeResponseFormat } from '../response-format.ts';
import { travelling } from '../headers.ts';
import { encodeThinking, defaultMaxTokens, type Thinking } from '../../_shared/thinking/index.ts';
import { historyForbidsThinking, makeRoomForThinking, thinks } from '../../_shared/thinking/room.ts';
import { isNative, nativeThinking, thinkingWords } from '../reasoning.ts';
import { settingRows } from '../settings.ts';
import { formatName, own } from '../wire.ts';
import type { Writing } from './scope.ts';
import { putBack } from '../../_shared/extra.ts';
import { refuseChoices } from '../../_shared/refuse.ts';

/** The longest tool name of the format. */
const nameLimit = 128;
/** Settings that span several fields and are written here, and the number of answers: one is what there is anyway. */
const handled = setOf('reasoning responseFormat parallelTools choices');

/** Returns a request as a provider of this format wants it. Throws 400 for content and tools that the format cannot carry. */
export function encodeRequest(request: ChatRequest, target: EncodeTarget): EncodedRequest {
  const writing: Writing = {
    ...writingOf(formatName, request, target, nameLimit),
    reasoningDropped: false,
  };
  const kept = own(request.extra);
  const counting = request.operation === 'count-tokens';
  reportForeign(request.extra, formatName, undefined, target.drop);
  refuseChoices(request, formatName);
  const body: MutableObject = { model: target.model };
  Object.assign(body, encodeHistory(request, writing));
  const customTools = encodeTools(body, request, writing);
  writePlainSettings(request, body, writing);
  const verbatim = writeReasoning(request, body, writing);
  const unwrapTool = writeResponseFormat(request, body, writing);
  restoreTop(body, kept, verbatim, target);
  if (!counting) {
    body.max_tokens ??= target.traits.outputLimit ?? defaultMaxTokens;
    if (target.stream) body.stream = true;
    else if (kept.$stream === false) body.stream = false;
  }
  return {
    path: counting ? '/messages/count_tokens' : '/messages',
    ...(writing.native ? { headers: travelling(target.headers) } : {}),
    body,
    ...writing.undoing(customTools, unwrapTool),
  };
}

function writePlainSettings(request: ChatRequest, body: MutableObject, writing: Writing): void {
  const { target, native } = writing;
  // A count has no place for any of them.
  const refuses =
    request.operation === 'count-tokens' ? settingRows.map((row) => row.name) : target.traits.refuses;
  const { ranges } = target.traits;
  writeSettings(request.settings, settingRows, body, { refuses, ranges, handled, drop: target.drop });
  if (native) return;
  if (body.temperature !== undefined && body.top_p !== undefined) {
    delete body.top_p;
    target.drop('settings.topP');
  }
  const stops = visibleStops(body.stop_sequences, writing);
  if (stops === undefined) delete body.stop_sequences;
  else body.stop_sequences = stops;
}

/** Encodes the request for reasoning. Returns true when it is unchanged from the client. */
function writeReasoning(request: ChatRequest, body: MutableObject, writing: Writing): boolean {
  const { reasoning } = request.settings;
  const maxOutput = request.operation === 'chat' ? request.settings.maxOutput : undefined;
  const { traits, drop } = writing.target;
  const kept = own(request.extra);
  if (reasoning === undefined) return kept.$reasoning === undefined;
  if (traits.refuses?.includes('reasoning') === true) {
    drop('settings.reasoning');
    return false;
  }
  const verbatim = writing.native && isNative(reasoning, kept, traits);
  const plan = verbatim
    ? nativeThinking(reasoning, kept)
    : encodeThinking(reasoning, { traits, maxOutput, drop });
  applyThinking(body, plan, request.operation);
  const mayChange = !verbatim || writing.reasoningDropped;
  if (mayChange && thinks(body.thinking) && historyForbidsThinking(body, thinkingWords)) {
    delete body.thinking;
    drop('settings.reasoning');
  }
  if (!verbatim && thinks(body.thinking)) makeRoomForThinking(body, thinkingWords, drop);
  return verbatim;
}

function applyThinking(body: MutableObject, plan: Thinking, operation: ChatRequest['operation']): void {
  if (plan.thinking !== undefined) body.thinking = plan.thinking;
  if (plan.effort !== undefined) {
    body.output_config = { ...(isObject(body.output_config) ? body.output_config : {}), effort: plan.effort };
  }
  if (plan.maxOutput !== undefined && operation === 'chat') body.max_tokens = plan.maxOutput;
}

/** Restores top-level members that only this format has. Drops those that depend on thinking if thinking was changed. */
function restoreTop(body: MutableObject, kept: JsonObject, verbatim: boolean, target: EncodeTarget): void {
  let fields = kept;
  if (!verbatim || (body.thinking === undefined && kept['thinking.type'] === undefined)) {
    const tied = new Set(
      Object.keys(kept).filter((key) => key.startsWith('thinking.') || key === 'output_config.effort'),
    );
    for (const key of tied) target.drop(key);
    if (tied.size > 0) fields = fieldsBeside(kept, tied);
  }
  const formats = ['output_config.format', 'output_format'].filter((path) => kept[path] === undefined);
  putBack(body, fields, [...formats, 'output_config', 'thinking', 'metadata', 'tool_choice']);
  if (kept.$metadata === 'empty') body.metadata ??= {};
  if (kept.$output_config === 'empty') body.output_config ??= {};
}

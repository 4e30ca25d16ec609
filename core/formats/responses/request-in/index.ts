/** Decodes a client's Responses request. */
import type { ChatRequest, ChatSettings, Message, ResponseFormat } from '../../../model/chat.ts';
import { isObject, type JsonObject, type JsonValue } from '../../../model/json.ts';
import { given, optionalArray, optionalBoolean, optionalObject, peek } from '../../_shared/check.ts';
import { readSettings } from '../../_shared/settings.ts';
import { decodeInput, type Aside } from './turns.ts';
import { decodeToolChoice, decodeToolList } from './tools.ts';
import type { Leftovers } from '../../_shared/extra.ts';
import { besideInstructions, readInstructions, readTruncation } from '../instructions.ts';
import { keepReasoning, readReasoning } from '../reasoning.ts';
import { formatFields, readResponseFormat } from '../response-format.ts';
import { rows } from '../settings.ts';
import { formatName, leftovers } from '../wire.ts';
import { keepUser } from '../../_openai/settings.ts';
import { setOf } from '../../_shared/fields.ts';

/** Fields about data that is stored between calls, which the gateway handles for all channels. */
const kept = ['store', 'previous_response_id', 'conversation', 'background', 'generate'] as const;
const bodyFields = new Set([
  ...setOf(`
  model input instructions stream stream_options tools tool_choice reasoning text include truncation
`),
  ...kept,
  ...rows.flatMap(({ path }) => (path.includes('.') ? [] : [path])),
]);
/** Members that are never reported as dropped: usage is always sent, and obfuscation is optional. */
const streamFields = setOf('include_usage include_obfuscation');
const textFields = setOf('format verbosity');

/** Value of `include` that requests log probabilities. */
export const logprobsWord = 'message.output_text.logprobs';
/** Value of `include` that requests encrypted reasoning. Replies of the gateway always carry it. */
export const encryptedWord = 'reasoning.encrypted_content';

/** Decodes a client's request. Throws 400 with the client's path. */
export function decodeRequest(body: JsonObject, operation: ChatRequest['operation'] = 'chat'): ChatRequest {
  const { model, stream } = peek(body);
  const left = leftovers().take(body, bodyFields).mark('$kept', body, kept);
  const input = decodeInput(body.input, left);
  const tools = [...decodeToolList(body.tools, 'tools', left), ...input.tools];
  const toolChoice = decodeToolChoice(body.tool_choice, left);
  const settings = decodeSettings(body, input.asides, left);
  if (given(body.tools)) left.put('$tools', body.tools);
  if (input.asides.length > 0) left.put('$asides', input.asides);
  if (body.stream === false) left.put('$stream', false);
  if (given(body.input)) left.put('$input', Array.isArray(body.input) ? 'items' : 'string');
  keepTruncation(body.truncation, left);
  keepStreamOptions(body, left);
  return {
    operation,
    format: formatName,
    model,
    stream: operation === 'chat' && stream,
    system: [...decodeInstructions(body, left), ...input.system],
    messages: input.messages,
    tools,
    settings,
    ...(toolChoice === undefined ? {} : { toolChoice }),
    ...left.extra(),
  };
}

function decodeInstructions(body: JsonObject, left: Leftovers): readonly Message[] {
  const text = readInstructions(body.instructions);
  if (text === undefined) return [];
  for (const path of besideInstructions(body)) left.put(path, true);
  return [
    {
      role: 'system',
      content: text === '' ? [] : [{ type: 'text', text, at: 'instructions' }],
      plain: true,
      at: 'instructions',
      ...leftovers().put('$instructions', true).extra(),
    },
  ];
}

/** Keeps `truncation`. `disabled` is never reported as dropped, because no other format truncates. */
function keepTruncation(value: JsonValue | undefined, left: Leftovers): void {
  const word = readTruncation(value);
  if (word !== undefined) left.put(word === 'disabled' ? '$truncation' : 'truncation', word);
}

/** Keeps `stream_options` without `include_usage`, because usage is always sent. Only this format has obfuscation. */
function keepStreamOptions(body: JsonObject, left: Leftovers): void {
  const options = optionalObject(body.stream_options, 'stream_options');
  if (options === undefined) return;
  const { include_usage: usage, ...rest } = options;
  optionalBoolean(usage, 'stream_options.include_usage');
  left.put('$stream_options', rest).take(options, streamFields, 'stream_options.');
}

function decodeSettings(body: JsonObject, asides: readonly Aside[], left: Leftovers): ChatSettings {
  keepText(body, left);
  keepReasoning(body, left);
  keepUser(body, left);
  const { reasoning, ...rest } = updated(
    {
      ...readSettings(body, rows),
      reasoning: readReasoning(optionalObject(body.reasoning, 'reasoning') ?? {}, 'reasoning'),
    },
    asides,
  );
  const settings: ChatSettings = {
    ...rest,
    ...(reasoning === undefined ? {} : { reasoning }),
    ...readInclude(body.include, left),
  };
  if (reasoning !== undefined) left.put('$wish', { ...reasoning });
  if (settings.responseFormat !== undefined) left.put('$format', { ...settings.responseFormat });
  return settings;
}

type Drafted = Omit<ChatSettings, 'reasoning'> & {
  readonly reasoning: ChatSettings['reasoning'] | undefined;
};

/** Returns the settings after every `configuration_update` in the input. */
function updated(settings: Drafted, asides: readonly Aside[]): Drafted {
  let { reasoning, responseFormat } = settings;
  for (const { index, item } of asides) {
    if (item.type !== 'configuration_update') continue;
    const at = `input[${index}]`;
    const decoded = readReasoning(optionalObject(item.reasoning, `${at}.reasoning`) ?? {}, `${at}.reasoning`);
    if (decoded !== undefined) reasoning = Object.assign({}, reasoning, decoded);
    const format = optionalObject(item.text, `${at}.text`)?.format;
    if (given(format))
      responseFormat = readResponseFormat(format, `${at}.text.format`) as unknown as ResponseFormat;
  }
  return { ...settings, reasoning, ...(responseFormat === undefined ? {} : { responseFormat }) };
}

function keepText(body: JsonObject, left: Leftovers): void {
  const text = optionalObject(body.text, 'text');
  if (text === undefined) return;
  left.put('$text', text).take(text, textFields, 'text.');
  if (isObject(text.format)) left.take(text.format, formatFields, 'text.format.');
}

/** Decodes `include`. Two of its values have a neutral meaning; the others are about tools that only this format has. */
function readInclude(value: JsonValue | undefined, left: Leftovers): { readonly logprobs?: true } {
  const list = optionalArray(value, 'include');
  if (list === undefined) return {};
  left.put('$include', list);
  const others = list.filter((word) => word !== logprobsWord && word !== encryptedWord);
  if (others.length > 0) left.put('include', others);
  return list.includes(logprobsWord) ? { logprobs: true } : {};
}

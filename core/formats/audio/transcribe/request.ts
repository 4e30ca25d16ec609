/** Requests for transcripts and translations of a recording, as multipart forms: decoding, encoding, and the estimate for budgets. */
import { GatewayError, wrongType, wrongValue } from '../../../sdk/errors.ts';
import type { TranscribeRequest } from '../../../model/audio.ts';
import type { FormPart } from '../../../model/form.ts';
import { parseObject } from '../../../json/parse.ts';
import type { JsonObject, JsonValue } from '../../../model/json.ts';
import type { ModelTraits } from '../../../model/traits.ts';
import { given, optionalString, requiredModel } from '../../_shared/check.ts';
import { reportForeign } from '../../_shared/foreign.ts';
import type { EncodedRequest, EncodeTarget, Expected, RouteParams } from '../../../sdk/format.ts';
import { recordingOf, secondsOf } from './recording.ts';
import { formatName, paths, plainTranscripts } from '../wire.ts';

/** Formats of a transcript. */
const replyFormats = ['json', 'text', 'srt', 'verbose_json', 'vtt', 'diarized_json'];

type TranscribeOperation = TranscribeRequest['operation'];

/** Reads and checks a form. Its fields are texts, whatever they mean. */
export function decodeTranscript(
  operation: TranscribeOperation,
): (body: JsonObject, params: RouteParams) => TranscribeRequest {
  return (body, params) => {
    const {
      model,
      language,
      prompt,
      instructions,
      temperature,
      response_format: format,
      stream,
      ...others
    } = body;
    const { timestamp_granularities: granularities, ...rest } = others;
    const replyFormat = optionalString(format, 'response_format') ?? 'json';
    if (!replyFormats.includes(replyFormat))
      throw wrongValue('response_format', `one of ${replyFormats.join(', ')}`);
    const timestamps = listOf(granularities, 'timestamp_granularities');
    if (timestamps !== undefined && replyFormat !== 'verbose_json')
      throw new GatewayError('invalid_value', 'timestamp_granularities needs response_format verbose_json.', {
        param: 'timestamp_granularities',
      });
    const promptText = optionalString(prompt, 'prompt') ?? optionalString(instructions, 'instructions');
    const heat = numberOf(temperature, 'temperature', 0, 1);
    const tongue = optionalString(language, 'language');
    if (typeof rest.chunking_strategy === 'string' && rest.chunking_strategy.startsWith('{'))
      if (parseObject(rest.chunking_strategy) === undefined)
        throw wrongValue('chunking_strategy', '"auto", or JSON text of an object');
    return {
      operation,
      format: formatName,
      model: requiredModel(model),
      file: recordingOf(params),
      stream: flagOf(stream),
      replyFormat,
      ...(tongue === undefined ? {} : { language: tongue }),
      ...(promptText === undefined ? {} : { prompt: promptText }),
      ...(heat === undefined ? {} : { temperature: heat }),
      ...(timestamps === undefined ? {} : { timestamps }),
      ...(Object.keys(rest).length === 0
        ? {}
        : { extra: { [formatName]: { ...rest, $parts: partsOf(params) } } }),
    };
  };
}

/** Returns the model and stream flag of a form. */
export function peekTranscript(body: JsonObject): { readonly model: string; readonly stream: boolean } {
  return { model: requiredModel(body.model), stream: flagOf(body.stream) };
}

function flagOf(value: JsonValue | undefined): boolean {
  if (!given(value) || value === 'false' || value === '0' || value === '') return false;
  if (value === 'true' || value === '1' || value === 'True') return true;
  throw wrongType('stream', 'true or false');
}

function numberOf(value: JsonValue | undefined, path: string, min: number, max: number): number | undefined {
  if (!given(value)) return undefined;
  const number = Number(value);
  if (typeof value !== 'string' || value.trim() === '' || Number.isNaN(number))
    throw wrongType(path, 'a number');
  if (number < min || number > max) throw wrongValue(path, `between ${min} and ${max}`);
  return number;
}

function listOf(value: JsonValue | undefined, path: string): readonly string[] | undefined {
  if (!given(value)) return undefined;
  const list = [value].flat();
  const wrong = list.find((one) => one !== 'word' && one !== 'segment');
  if (wrong !== undefined) throw wrongValue(path, '"word" or "segment"');
  return list as readonly string[];
}

/** Returns the fields with their names as the client spelled them, with brackets, so that unknown fields can be written back. */
function partsOf({ form }: RouteParams): readonly JsonValue[] {
  return (form ?? []).flatMap((part) => ('value' in part ? [[part.name, part.value]] : []));
}

/** Returns the format to request from the model: the client's, or one from which it can be generated; undefined if there is none. */
export function requestedFormat(replyFormat: string, traits: ModelTraits): string | undefined {
  const known = traits.transcripts;
  if (known === undefined || known.includes(replyFormat)) return replyFormat;
  if (replyFormat === 'text' && known.includes('json')) return 'json';
  if ((replyFormat === 'srt' || replyFormat === 'vtt') && known.includes('verbose_json'))
    return 'verbose_json';
  return undefined;
}

/** Returns true when the client's form can pass through: it has no unofficial fields, and the model supports its response format. */
export function passesTranscript(body: JsonObject, traits: ModelTraits): boolean {
  const format = typeof body.response_format === 'string' ? body.response_format : 'json';
  return !given(body.instructions) && requestedFormat(format, traits) === format;
}

/** Fields that the encoder writes from the neutral request. */
const written: ReadonlySet<string> = new Set([
  'model',
  'language',
  'prompt',
  'instructions',
  'temperature',
  'response_format',
  'stream',
  'timestamp_granularities',
]);

/** Writes the form for a provider. */
export function encodeTranscript(
  request: TranscribeRequest,
  { model, stream, traits, drop }: EncodeTarget,
): EncodedRequest {
  const { operation, file, language, prompt, temperature, replyFormat, timestamps, extra } = request;
  const requested = requestedFormat(replyFormat, traits);
  if (requested === undefined) {
    throw new GatewayError(
      'unsupported_value',
      `This model does not support response_format ${replyFormat}. Use ${traits.transcripts?.join(' or ')}.`,
      { param: 'response_format' },
    );
  }
  reportForeign(extra, formatName, undefined, drop);
  const parts: FormPart[] = [
    { name: 'file', file },
    { name: 'model', value: model },
  ];
  const put = (name: string, value: string | undefined): void => {
    if (value !== undefined) parts.push({ name, value });
  };
  put('language', language);
  put('prompt', prompt);
  put('temperature', temperature === undefined ? undefined : String(temperature));
  put('response_format', requested === 'json' ? undefined : requested);
  put('stream', stream ? 'true' : undefined);
  for (const one of timestamps ?? []) put('timestamp_granularities[]', one);
  const own = extra?.[formatName]?.$parts;
  if (Array.isArray(own)) {
    for (const [name, value] of own as readonly (readonly [string, string])[])
      if (!written.has(name.replace(/\[\d*\]$/, ''))) put(name, value);
  }
  return { path: paths[operation], body: {}, form: parts };
}

/** Estimates the usage of a transcript for budgets: ten input and four output tokens per second, as models count that bill by tokens. */
export function expectedOfRecording({ file, prompt = '' }: TranscribeRequest): Expected {
  const { about, most } = secondsOf(file);
  const words = Buffer.byteLength(prompt);
  return {
    input: about * 10 + Math.ceil(words / 4),
    output: about * 4,
    units: { seconds: about },
    // Upper bound: other models count up to 32 input tokens per second, and fast speech in lower case has more output tokens.
    most: { input: most * 32 + words + 64, output: most * 16, units: { seconds: most } },
  };
}

/** Returns true for a transcript that is no JSON. */
export function wantsPlain(body: JsonObject): boolean {
  return typeof body.response_format === 'string' && Object.hasOwn(plainTranscripts, body.response_format);
}

/** Requests for speech (`/v1/audio/speech`): decoding, encoding, and the estimate of characters and tokens for budgets. */
import { wrongType, wrongValue } from '../../../sdk/errors.ts';
import type { SpeakRequest } from '../../../model/audio.ts';
import { isObject, type JsonObject } from '../../../model/json.ts';
import type { ModelTraits } from '../../../model/traits.ts';
import { given, optionalNumber, optionalString, requiredModel, requiredString } from '../../_shared/check.ts';
import { reportForeign } from '../../_shared/foreign.ts';
import { extraOf, spellingIn } from '../../_shared/spelling.ts';
import type { EncodedRequest, EncodeTarget, Expected } from '../../../sdk/format.ts';
import { formatName, paths } from '../wire.ts';

/** Most characters that are spoken at once. */
const mostCharacters = 4096;

/** Reads and checks a request. Voices and formats of files are the provider's business. */
export function decodeSpeech(body: JsonObject): SpeakRequest {
  const {
    model,
    input,
    voice,
    response_format: format,
    speed,
    instructions,
    stream_format: framing,
    ...rest
  } = body;
  const text = requiredString(input, 'input');
  if (text === '') throw wrongValue('input', 'a string that is not empty');
  // A text of more than twice the limit exceeds it however its characters are counted.
  if (text.length > 2 * mostCharacters || [...text].length > mostCharacters)
    throw wrongValue('input', `at most ${mostCharacters} characters long`);
  if (given(framing) && framing !== 'audio' && framing !== 'sse')
    throw wrongValue('stream_format', '"audio" or "sse"');
  const pace = optionalNumber(speed, 'speed', { min: 0.25, max: 4 });
  const style = optionalString(instructions, 'instructions');
  const fileFormat = optionalString(format, 'response_format');
  return {
    operation: 'speak',
    format: formatName,
    model: requiredModel(model),
    text,
    voice: voiceOf(voice),
    fileFormat: fileFormat ?? 'mp3',
    stream: framing === 'sse',
    ...(pace === undefined ? {} : { speed: pace }),
    ...(style === undefined ? {} : { instructions: style }),
    ...extraOf(formatName, rest, fileFormat === undefined ? { usual: true } : {}),
  };
}

function voiceOf(voice: JsonObject[string]): SpeakRequest['voice'] {
  if (isObject(voice)) return { id: requiredString(voice.id, 'voice.id') };
  if (given(voice) && typeof voice !== 'string')
    throw wrongType('voice', 'a string, or an object with an id');
  return requiredString(voice, 'voice');
}

/** Writes the request for a provider. */
export function encodeSpeech(request: SpeakRequest, { model, traits, drop }: EncodeTarget): EncodedRequest {
  const { text, voice, fileFormat, speed, instructions, stream, extra } = request;
  reportForeign(extra, formatName, undefined, drop);
  const { usual } = spellingIn(extra, formatName);
  return {
    path: paths.speak,
    body: {
      model,
      input: text,
      voice: typeof voice === 'string' ? voice : { id: voice.id },
      ...(usual === true ? {} : { response_format: fileFormat }),
      ...(speed === undefined ? {} : { speed }),
      ...(instructions === undefined ? {} : { instructions }),
      // A model that cannot stream returns bytes, and the gateway makes the client's stream of them.
      ...(stream && traits.streamsSpeech !== false ? { stream_format: 'sse' } : {}),
      ...extra?.[formatName],
    },
  };
}

/** Returns true if the request can be sent unchanged: a stream of events only if the model supports events. */
export function passesSpeech({ stream_format: framing }: JsonObject, traits: ModelTraits): boolean {
  return framing !== 'sse' || traits.streamsSpeech !== false;
}

/** Providers that count a Han character as two: https://www.alibabacloud.com/help/en/model-studio/qwen-tts */
const countsTwice = /\p{Script=Han}/u;

/** Estimates the usage of speech for budgets: characters and tokens, with an upper bound. */
export function expectedOfSpeech({ text, instructions = '', speed = 1 }: SpeakRequest): Expected {
  let characters = 0;
  let most = 0;
  for (const character of text) {
    characters += 1;
    most += countsTwice.test(character) ? 2 : 1;
  }
  const bytes = Buffer.byteLength(text) + Buffer.byteLength(instructions);
  return {
    input: Math.ceil(bytes / 4),
    // About twenty tokens of sound a second, fifteen characters a second.
    output: Math.ceil((characters / 15) * 20),
    units: { characters },
    // A digit may be a word, and a word take a second where it is spoken slowly.
    most: {
      input: bytes + 64,
      output: Math.ceil((characters * 20) / Math.min(1, speed)),
      ...(most === characters ? {} : { units: { characters: most } }),
    },
  };
}

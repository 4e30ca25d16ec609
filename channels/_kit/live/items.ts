/** Translates conversation items, audio and function results of OpenAI's Realtime API into input of Gemini's Live API. */
import { GatewayError, isObject, parseObject, type JsonObject, type JsonValue } from 'sluice';
import { soundFormat, type SoundFormat } from './settings.ts';
import { bytesOf, decodeG711, Resampler, samplesOf, type Samples } from './sound.ts';

/** Rate of sound that stands in a turn. Any other closes the session: pydantic-ai-slim 2.68.0, realtime/google.py, `_seed_request_parts`. */
const turnRate = 16_000;

/** Returns an item of the conversation as a turn. Throws 400 for what Gemini does not take. */
export function turnOf(item: JsonObject, format: JsonValue | undefined): JsonObject {
  const { type, role, content } = item;
  if (type !== 'message')
    throw unsupported('item.type', `Items of the type ${JSON.stringify(type)} cannot be added`);
  if (!Array.isArray(content)) throw wrong('item.content', 'an array');
  const parts = content.map((part, at) => partOf(part, `item.content[${at}]`, soundFormat(format)));
  // A turn of the role `system` is refused: livekit-plugins-google 1.8.9, realtime/realtime_api.py
  return { role: role === 'assistant' ? 'model' : 'user', parts };
}

function partOf(part: JsonValue, at: string, format: SoundFormat = { rate: 24_000 }): JsonObject {
  const { type, text, transcript, audio, image_url: image } = isObject(part) ? part : {};
  switch (type) {
    case 'input_text':
    case 'output_text':
    case 'text':
      if (typeof text !== 'string') throw wrong(`${at}.text`, 'a string');
      return { text };
    case 'output_audio':
      if (typeof transcript !== 'string') throw wrong(`${at}.transcript`, 'a string');
      return { text: transcript };
    case 'input_audio': {
      if (typeof audio !== 'string') throw wrong(`${at}.audio`, 'a string');
      const samples = linear(Buffer.from(audio, 'base64'), format);
      const data = bytesOf(new Resampler(format.rate, turnRate).push(samples)).toString('base64');
      return { inlineData: { mimeType: `audio/pcm;rate=${turnRate}`, data } };
    }
    case 'input_image': {
      const [, mimeType, data] =
        /^data:(image\/[a-z.+-]+);base64,(.*)$/s.exec(typeof image === 'string' ? image : '') ?? [];
      if (mimeType === undefined || data === undefined)
        throw wrong(`${at}.image_url`, 'a data URL of an image');
      return { inlineData: { mimeType, data } };
    }
    default:
      throw unsupported(`${at}.type`, `Parts of the type ${JSON.stringify(type)} cannot be added`);
  }
}

function linear(bytes: Buffer, { law }: SoundFormat): Samples {
  return law === undefined ? samplesOf(bytes) : decodeG711(bytes, law);
}

/** Returns sound of a client as realtime input. Gemini takes every rate that its type names: https://ai.google.dev/gemini-api/docs/live-guide */
export function soundInput(audio: JsonValue | undefined, format: JsonValue | undefined): JsonObject {
  if (typeof audio !== 'string') throw wrong('audio', 'a string');
  const { rate, law } = soundFormat(format) ?? { rate: 24_000 };
  const data =
    law === undefined ? audio : bytesOf(decodeG711(Buffer.from(audio, 'base64'), law)).toString('base64');
  return { realtimeInput: { audio: { data, mimeType: `audio/pcm;rate=${rate}` } } };
}

/** Returns the result of a function as Gemini has it: an object. */
export function resultOf(output: JsonValue | undefined): JsonObject {
  if (typeof output !== 'string') throw wrong('item.output', 'a string');
  const parsed = output.trimStart().startsWith('{') ? parseObject(output) : undefined;
  return parsed ?? { output };
}

/** Returns the error for a member whose value makes no sense. `what`: what it must be. */
export function wrong(param: string, what: string): GatewayError {
  return new GatewayError('invalid_value', `Invalid value for ${param}: it must be ${what}.`, { param });
}

/** Returns the error for what Gemini has no word for. `sentence` ends before "to a session of this model". */
export function unsupported(param: string, sentence: string): GatewayError {
  return new GatewayError('unsupported_parameter', `${sentence} to a session of this model.`, { param });
}

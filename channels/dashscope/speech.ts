import { isObject, type GatewayEvent, type JsonObject, type Usage } from 'sluice';
import {
  truncatedResponse,
  readFrame,
  noUsage,
  defineCodec,
  throwIfError,
  unusableResponse,
  type Codec,
  type EncodedRequest,
  type EncodeTarget,
  type Frame,
  type SpeakRequest,
  type StreamDecoder,
} from 'sluice/channel-kit';
import { ownWords } from '../_kit/dialect/own-words.ts';
import { voiceName } from '../_kit/media/speech.ts';

/** Samples of 16 bits, one channel: https://www.alibabacloud.com/help/en/model-studio/qwen-tts, its example of a stream. */
const mimeType = 'audio/pcm;rate=24000';

const position = { block: 0, choice: 0 } as const;

/**
 * Asks for a stream, whose sound stands in its events: a whole response has an address of a file in its place.
 * dashscope 2.0.2, aigc/multimodal_conversation.py and api_entities/http_request.py
 */
function encode(request: SpeakRequest, { model, drop }: EncodeTarget): EncodedRequest {
  const { text, fileFormat, speed, instructions, extra } = request;
  const { language_type: language } = ownWords(extra, ['language_type'], drop);
  if (speed !== undefined && speed !== 1) drop('speed');
  if (instructions !== undefined) drop('instructions');
  // The provider returns raw samples. The default format is WAV, which every player supports.
  if (fileFormat !== 'pcm' && fileFormat !== 'wav') drop('response_format');
  return {
    path: '/services/aigc/multimodal-generation/generation',
    headers: { accept: 'text/event-stream', 'x-dashscope-sse': 'enable' },
    body: {
      model,
      input: {
        text,
        voice: voiceName(request),
        ...(language === undefined ? {} : { language_type: language }),
      },
    },
  };
}

/** Reads `usage`: characters of Qwen3-TTS, tokens of Qwen-TTS. dashscope 2.0.2, api_entities/dashscope_response.py */
function readUsage({ characters, input_tokens: input, output_tokens: output }: JsonObject): Usage {
  const count = (value: JsonObject[string] | undefined): number =>
    typeof value === 'number' && value > 0 ? value : 0;
  return {
    ...noUsage,
    input: count(input),
    output: count(output),
    ...(typeof characters === 'number' ? { units: { characters: count(characters) } } : {}),
  };
}

/** Decodes a stream of audio chunks. Each event has the cumulative usage, and the last one is marked as the last. */
class SpeechEvents implements StreamDecoder {
  #begun = false;
  #done = false;
  #usage: Usage | undefined;

  frame(frame: Frame): readonly GatewayEvent[] {
    const body = readFrame(frame);
    const { output, usage } = body;
    if (!isObject(output)) throwIfError(body);
    if (isObject(usage)) this.#usage = readUsage(usage);
    const { audio, finish_reason: finish } = isObject(output) ? output : {};
    if (finish === 'stop') this.#done = true;
    const { data } = isObject(audio) ? audio : {};
    if (typeof data !== 'string' || data === '') return [];
    const delta: GatewayEvent = { type: 'media-delta', ...position, data };
    if (this.#begun) return [delta];
    this.#begun = true;
    return [{ type: 'media-start', ...position, media: 'audio', mimeType }, delta];
  }

  end(): readonly GatewayEvent[] {
    if (!this.#done) throw truncatedResponse();
    if (!this.#begun) throw unusableResponse('gave no speech');
    return [
      { type: 'media-end', ...position },
      ...(this.#usage === undefined ? [] : [{ type: 'usage', usage: this.#usage } as const]),
    ];
  }
}

/** Returns the codec of speech by Qwen3-TTS and Qwen-TTS. */
export function dashscopeSpeech(format: string): Codec<SpeakRequest> {
  return defineCodec<SpeakRequest>({
    format,
    operation: 'speak',
    path: '',
    upstreamFraming: 'sse',
    encodeRequest: encode,
    decodeStream: () => new SpeechEvents(),
    decodeWhole(body) {
      throwIfError(body);
      throw unusableResponse('gave no speech');
    },
  });
}

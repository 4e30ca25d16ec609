import type { SpeakRequest } from '../../model/audio.ts';
import type { GatewayEvent } from '../../model/event.ts';
import { isObject, type JsonObject } from '../../model/json.ts';
import { reportForeign } from '../_shared/foreign.ts';
import { defineCodec } from '../_shared/define-codec.ts';
import type { Codec, EncodedRequest, EncodeTarget } from '../../sdk/format.ts';
import { methodPath } from './request-out/index.ts';
import { readUsage } from './usage.ts';
import { formatName } from './wire.ts';
import { isText, listOf, objectsOf, textOf } from '../_shared/fields.ts';
import { throwIfError, unusableResponse } from '../_shared/upstream-error/index.ts';

/** Generates speech with models that return audio in chat. Clients of this format send chat requests, so no request is decoded here. */
export const speak: Codec<SpeakRequest> = defineCodec<SpeakRequest>({
  format: formatName,
  operation: 'speak',
  path: '',
  decodeRequest: noClient,
  encodeRequest,
  decodeWhole,
  encodeWhole: noClient,
});

function noClient(): never {
  throw new Error('Clients of this format ask for speech as for a chat.');
}

function encodeRequest(request: SpeakRequest, { model, drop }: EncodeTarget): EncodedRequest {
  const { text, voice, fileFormat, speed, instructions, extra } = request;
  reportForeign(extra, formatName, undefined, drop);
  if (speed !== undefined) drop('speed');
  // The provider returns only samples. Formats other than `pcm` and `wav` are dropped, and the response is WAV, which every player
  // supports.
  if (fileFormat !== 'pcm' && fileFormat !== 'wav') drop('response_format');
  const voiceName = typeof voice === 'string' ? voice : voice.id;
  return {
    ...methodPath(model, 'generateContent'),
    body: {
      contents: [
        { role: 'user', parts: [{ text: instructions === undefined ? text : `${instructions}: ${text}` }] },
      ],
      generationConfig: {
        responseModalities: ['AUDIO'],
        speechConfig: { voiceConfig: { prebuiltVoiceConfig: { voiceName } } },
      },
    },
  };
}

function isSound({ mimeType, data }: JsonObject): boolean {
  return (
    typeof data === 'string' &&
    /^[\w+/-]+={0,2}$/.test(data) &&
    (typeof mimeType !== 'string' || /^audio\//i.test(mimeType))
  );
}

const position = { block: 0, choice: 0 };

function decodeWhole(body: JsonObject): readonly GatewayEvent[] {
  throwIfError(body);
  const [candidate] = listOf(body.candidates);
  const { content, finishReason } = isObject(candidate) ? candidate : {};
  const parts = objectsOf(isObject(content) ? content.parts : undefined);
  const sounds = parts
    .map(({ inlineData }) => inlineData)
    .filter(isObject)
    .filter(isSound);
  if (sounds.length === 0) {
    const why = isText(finishReason) ? `: ${finishReason.slice(0, 100)}` : '';
    throw unusableResponse(`gave no speech${why}`);
  }
  const [{ mimeType } = {}] = sounds;
  const usage = isObject(body.usageMetadata) ? readUsage(body.usageMetadata) : undefined;
  return [
    {
      type: 'media-start',
      ...position,
      media: 'audio',
      ...(typeof mimeType === 'string' ? { mimeType } : {}),
    },
    ...sounds.map(({ data }) => ({ type: 'media-delta', ...position, data: textOf(data) }) as const),
    { type: 'media-end', ...position },
    ...(usage === undefined ? [] : [{ type: 'usage', usage } as const]),
  ];
}

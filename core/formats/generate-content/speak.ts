import { GatewayError } from '../../sdk/errors.ts';
import type { SpeakRequest } from '../../model/audio.ts';
import type { GatewayEvent } from '../../model/event.ts';
import { isObject, type JsonObject } from '../../model/json.ts';
import { loseForeign } from '../_shared/foreign.ts';
import { oneShot } from '../_shared/one-shot.ts';
import type { Codec, EncodedRequest, EncodeTarget } from '../../sdk/format.ts';
import { methodPath } from './request-out/index.ts';
import { readUsage } from './usage.ts';
import { formatName } from './wire.ts';
import { listOf } from '../_shared/fields.ts';
import { throwIfError } from '../_shared/upstream-error/index.ts';

/** Speech by a model that answers in sound. Clients of this format ask for it as a chat: nobody decodes a request of theirs here. */
export const speak: Codec<SpeakRequest> = oneShot<SpeakRequest>({
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

function encodeRequest(request: SpeakRequest, { model, lose }: EncodeTarget): EncodedRequest {
  const { text, voice, fileFormat, speed, instructions, extra } = request;
  loseForeign(extra, formatName, undefined, lose);
  if (speed !== undefined) lose('speed');
  // Only samples are given. What was not asked for is WAV, which every player knows.
  if (fileFormat !== 'pcm' && fileFormat !== 'wav') lose('response_format');
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

function decodeWhole(body: JsonObject): readonly GatewayEvent[] {
  throwIfError(body);
  const [candidate] = listOf(body.candidates);
  const content = isObject(candidate) && isObject(candidate.content) ? candidate.content : {};
  const parts = listOf(content.parts);
  const sounds = parts.flatMap((part) =>
    isObject(part) && isObject(part.inlineData) && isSound(part.inlineData) ? [part.inlineData] : [],
  );
  if (sounds.length === 0) {
    const why =
      isObject(candidate) && typeof candidate.finishReason === 'string'
        ? candidate.finishReason.slice(0, 100)
        : '';
    throw new GatewayError('upstream_error', `The upstream gave no speech${why === '' ? '' : `: ${why}`}.`, {
      origin: 'upstream',
    });
  }
  const [{ mimeType } = {}] = sounds;
  const usage = isObject(body.usageMetadata) ? readUsage(body.usageMetadata) : undefined;
  return [
    {
      type: 'media-start',
      block: 0,
      choice: 0,
      media: 'audio',
      ...(typeof mimeType === 'string' ? { mimeType } : {}),
    },
    ...sounds.map(
      ({ data }) =>
        ({ type: 'media-delta', block: 0, choice: 0, data: typeof data === 'string' ? data : '' }) as const,
    ),
    { type: 'media-end', block: 0, choice: 0 },
    ...(usage === undefined ? [] : [{ type: 'usage', usage } as const]),
  ];
}

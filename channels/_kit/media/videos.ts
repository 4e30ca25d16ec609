/**
 * Builds video codecs and channels for providers with an API of their own, and fits resolutions, durations and ratios to those that they
 * offer.
 */
import { of } from 'rxjs';
import type { ChannelOptions, JsonObject, JsonValue, ChannelParts, ChannelTools } from 'sluice';
import {
  limitImages,
  imageText,
  reportVideoSettings,
  requestedRatio,
  requestedResolution,
  addMetadata,
  defineVideoCodecs,
  type EncodedRequest,
  type EncodeTarget,
  type VideoRequest,
  type VideoCodecSpec,
} from 'sluice/channel-kit';
import { bearer, overHttp, type HttpProvider } from '../http/http-channel.ts';

/** Returns the requested resolution in lower case. Drops one that the model does not offer, and reports its field. */
export function offeredResolution(
  request: VideoRequest,
  isOffered: (resolution: string) => boolean,
  { drop }: Pick<EncodeTarget, 'drop'>,
): string | undefined {
  const resolution = requestedResolution(request)?.toLowerCase();
  if (resolution === undefined || isOffered(resolution)) return resolution;
  drop(request.resolution === undefined ? 'settings.size' : 'settings.resolution');
  return undefined;
}

/** Replaces a response 204 by 200 with an empty JSON object. */
export function neverEmpty(open: ChannelParts['open']): ChannelParts['open'] {
  return async (call, request) => {
    const answer = await open(call, request);
    return answer.status === 204 ? { ...answer, status: 200, bytes: of(Buffer.from('{}')) } : answer;
  };
}

/**
 * Returns the shortest offered length that is not below the requested one, or the longest. A length that differs from the requested one is
 * reported.
 */
export function nearestLength(
  { seconds }: VideoRequest,
  lengths: readonly number[],
  { drop }: Pick<EncodeTarget, 'drop'>,
): number | undefined {
  if (seconds === undefined) return undefined;
  const longEnough = lengths.find((length) => length >= seconds) ?? lengths.at(-1);
  if (longEnough !== seconds) drop('settings.seconds');
  return longEnough;
}

/**
 * Sets up a channel that makes videos and nothing else, of which each task has an address of its own: there it is asked about (GET) and told
 * to end (DELETE).
 */
export function videosAlone(
  provider: Pick<HttpProvider, 'baseUrl' | 'defaults'>,
  words: Pick<VideoCodecSpec, 'format' | 'encode' | 'readReport'>,
  task: (id: string) => string,
): (options: ChannelOptions, tools: ChannelTools) => ChannelParts {
  const { format } = words;
  const at = (id: string, method: 'GET' | 'DELETE'): EncodedRequest => ({
    path: task(encodeURIComponent(id)),
    method,
    body: {},
  });
  return (options, tools) => ({
    speaks: { 'create-video': [format], 'get-video': [format], 'delete-video': [format] },
    codecs: defineVideoCodecs({
      ...words,
      ask: ({ id }) => at(id, 'GET'),
      cancel: ({ id }) => at(id, 'DELETE'),
    }),
    open: neverEmpty(overHttp(options, tools, { ...provider, headers: bearer, speaks: {} }).open),
  });
}

/** Names of the members that differ between the models of several makers at one provider. */
interface ModelWords {
  readonly format: string;
  /** The member that takes the image with which a video begins. */
  readonly image: string;
  readonly duration: (seconds: number) => JsonValue;
}

/** Returns a request as most models of such a provider take it: members that they do not know are theirs to refuse. */
export function inModelWords(
  request: VideoRequest,
  target: EncodeTarget,
  { format, image: name, duration }: ModelWords,
): JsonObject {
  reportVideoSettings(
    request,
    ['seconds', 'size', 'aspectRatio', 'resolution', 'seed', 'negativePrompt'],
    target,
  );
  const { prompt, seconds, seed, negativePrompt, metadata } = request;
  const [image] = limitImages(request.images, 1, format, target);
  const ratio = requestedRatio(request, commonRatios, target);
  const resolution = requestedResolution(request);
  return addMetadata(
    {
      prompt,
      ...(image === undefined ? {} : { [name]: imageText(image, 'data-url', format) }),
      ...(ratio === undefined ? {} : { aspect_ratio: ratio }),
      ...(resolution === undefined ? {} : { resolution }),
      ...(seconds === undefined ? {} : { duration: duration(seconds) }),
      ...(seed === undefined ? {} : { seed }),
      ...(negativePrompt === undefined ? {} : { negative_prompt: negativePrompt }),
    },
    metadata,
    target,
  );
}

/** Ratios that most models make. */
export const commonRatios: readonly string[] = '21:9 16:9 4:3 1:1 3:4 9:16'.split(' ');

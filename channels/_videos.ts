import { of } from 'rxjs';
import type { JsonObject } from 'sluice';
import {
  videoCodecs,
  type ChannelParts,
  type EncodedRequest,
  type EncodeTarget,
  type VideoCodecs,
  type VideoReport,
  type VideoRequest,
  type VideoTaskRequest,
} from 'sluice/internal';

/** How a provider makes videos, and tells of the tasks that come of it, in its own words, which no client sends. */
export interface OwnVideos {
  /** The name under which its channel speaks. */
  readonly format: string;
  encode(request: VideoRequest, target: EncodeTarget): EncodedRequest;
  /** Reads what it says of a task, when that is made and later. Throws GatewayError where it refuses. */
  readReport(body: JsonObject): VideoReport;
  ask(request: VideoTaskRequest): EncodedRequest;
  readonly cancel?: (request: VideoTaskRequest) => EncodedRequest;
  readonly contentRequest?: (
    request: VideoTaskRequest,
    part: 'video' | 'thumbnail' | 'spritesheet',
    url: string | undefined,
  ) => EncodedRequest | undefined;
}

/** The codecs for making videos and for the tasks. */
export function ownVideos(videos: OwnVideos): VideoCodecs {
  const noClient = (): never => {
    throw new Error('No client speaks the words of this channel.');
  };
  return videoCodecs({
    words: {},
    model: noClient,
    decode: noClient,
    writeSubmitted: noClient,
    writeStatus: noClient,
    ...videos,
  });
}

/** A channel that answers nothing where there is nothing to say: as the empty object that this means. */
export function neverEmpty(open: ChannelParts['open']): ChannelParts['open'] {
  return async (call, request) => {
    const answer = await open(call, request);
    return answer.status === 204 ? { ...answer, status: 200, bytes: of(Buffer.from('{}')) } : answer;
  };
}

/** The length next to a wished one of those that a provider makes; another one than was wished is reported. */
export function nearestLength(
  { seconds }: VideoRequest,
  lengths: readonly number[],
  { lose }: Pick<EncodeTarget, 'lose'>,
): number | undefined {
  if (seconds === undefined) return undefined;
  const longEnough = lengths.find((length) => length >= seconds) ?? lengths.at(-1);
  if (longEnough !== seconds) lose('settings.seconds');
  return longEnough;
}

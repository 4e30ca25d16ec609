/** Asks a provider for the state and the content of a video. */
import type { VideoTaskRequest } from '../../model/video.ts';
import type { Codec, EncodedRequest } from '../../sdk/format.ts';

function pathOf({ id }: VideoTaskRequest): string {
  return `/videos/${encodeURIComponent(id)}`;
}

/** How the provider is asked for a video. */
export function askTask(request: VideoTaskRequest): EncodedRequest {
  return { path: pathOf(request), method: 'GET', body: {} };
}

/** How it is told to forget one. */
export function cancelTask(request: VideoTaskRequest): EncodedRequest {
  return { path: pathOf(request), method: 'DELETE', body: {} };
}

/** The bytes are behind a path of the provider's own, unless it told another address. */
export const contentRequest: NonNullable<Codec<VideoTaskRequest>['contentRequest']> = (request, part, url) =>
  url === undefined
    ? {
        path: `${pathOf(request)}/content`,
        ...(part === 'video' ? {} : { query: { variant: part } }),
        method: 'GET',
        body: {},
      }
    : undefined;

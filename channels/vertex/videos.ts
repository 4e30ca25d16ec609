/** Video codecs for Veo on Vertex AI, and the request that takes the bytes of a video out of its operation. */
import {
  GatewayError,
  isObject,
  type JsonObject,
  type UpstreamRequest,
  type Call,
  type ChannelParts,
} from 'sluice';
import { type VideoReport, type VideoCodecs, ExactBytes } from 'sluice/channel-kit';
import { generateContentVideos, readVideoOperation } from 'sluice/internal';
import { requestWhole, answerOf, stepOf, hasSucceeded } from '../_kit/jobs/jobs.ts';

/** Name of the format, which differs from generateContent in the request for an operation's status. */
export const videoFormat = 'vertex-videos';

const question = (model: string): string => `/models/${encodeURIComponent(model)}:fetchPredictOperation`;

/**
 * https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/veo-video-generation
 * https://github.com/googleapis/js-genai (src/operations.ts, src/converters/_operations_converters.ts)
 */
export const vertexVideos: VideoCodecs = {
  'create-video': { ...generateContentVideos['create-video'], format: videoFormat },
  'get-video': {
    ...generateContentVideos['get-video'],
    format: videoFormat,
    encodeRequest: ({ id, model }) => ({ path: question(model), body: { operationName: id } }),
    decodeWhole: (body) => [{ type: 'result', value: readReport(body) }],
    // Without a bucket to put them into, the bytes stand in the operation itself.
    contentRequest: ({ id, model }, part, url) =>
      part === 'video' && url === undefined
        ? { path: question(model), query: { operation: id }, method: 'GET', body: {} }
        : undefined,
  },
};

function readReport(body: JsonObject): VideoReport {
  const report = readVideoOperation(body);
  return report.state === 'failed' && videoIn(body) !== undefined
    ? { id: report.id, state: 'completed' }
    : report;
}

/** Returns the bytes of a finished video, in base64. */
function videoIn({
  response,
  error,
}: JsonObject): { readonly data: string; readonly type: string } | undefined {
  const list = isObject(response) && !isObject(error) ? response.videos : undefined;
  const first: unknown = Array.isArray(list) ? list[0] : undefined;
  if (!isObject(first) || typeof first.bytesBase64Encoded !== 'string') return undefined;
  return {
    data: first.bytesBase64Encoded,
    type: typeof first.mimeType === 'string' ? first.mimeType : 'video/mp4',
  };
}

/** Downloads a video by its operation; all other requests pass unchanged. */
export async function openVideo(
  call: Call,
  open: ChannelParts['open'],
  request: UpstreamRequest,
): ReturnType<ChannelParts['open']> {
  const { operation } = request.query;
  if (request.format !== videoFormat || operation === undefined) return open(call, request);
  const body = JSON.stringify({ operationName: operation });
  const step = await requestWhole(call, open, stepOf(request, { path: request.path, body }));
  if (!hasSucceeded(step)) return answerOf(step);
  const video = videoIn(step.body);
  if (video === undefined)
    throw new GatewayError('upstream_error', 'The upstream returned no video.', { origin: 'upstream' });
  const bytes = Buffer.from(video.data, 'base64');
  return {
    status: 200,
    headers: { 'content-type': video.type, 'content-length': String(bytes.length) },
    bytes: new ExactBytes((subscriber) => {
      subscriber.next(bytes);
      subscriber.complete();
    }),
  };
}

/** Serves the content of finished videos. */
import { concat, map, of, type Observable } from 'rxjs';
import { GatewayError, wrongValue, type GatewayEvent, type Upstream } from 'sluice';
import type { Call, InternalTools, Target } from 'sluice/internal';
import type { Task } from './core-types.ts';
import { requestFor, type Poller } from './poller.ts';
import { codecOf, type Delivery } from './shown.ts';

const parts = ['video', 'thumbnail', 'spritesheet'] as const;
type Part = (typeof parts)[number];

/** Services for serving a video. */
export interface ContentTools extends Pick<Delivery, 'delivery'> {
  readonly tools: Pick<InternalTools, 'catalog' | 'download' | 'format'>;
  readonly poller: Poller;
}

/** Returns which piece of a video a query requests. Throws 400 on nonsense. */
export function partIn(query: URLSearchParams): Part {
  const variant = query.get('variant') ?? 'video';
  const part = parts.find((one) => one === variant);
  if (part === undefined) throw wrongValue('variant', 'video, thumbnail or spritesheet');
  return part;
}

/** Returns the bytes of a finished video, or of a picture of it, as the provider sends them, in the range that the client requests. */
export async function contentOf(
  call: Call,
  task: Task,
  part: Part,
  content: ContentTools,
): Promise<Observable<GatewayEvent>> {
  if (task.state !== 'completed') throw notReady(task);
  const url = part === 'thumbnail' ? task.thumbnailUrl : part === 'video' ? task.url : undefined;
  const request = guardedRequest(task, part, url, content);
  if (request === undefined && url === undefined)
    throw new GatewayError('not_found', `This video has no ${part}.`, { param: 'variant' });
  if (request === undefined && content.delivery === 'redirect' && url !== undefined) {
    return of<GatewayEvent[]>({
      type: 'answer',
      status: 302,
      headers: { location: url, 'content-length': '0' },
    });
  }
  const headers = rangeHeaders(call);
  let answer =
    request === undefined
      ? await content.tools.download(call, url ?? '', headers)
      : await openGuarded(call, task, request, headers, content);
  if (request === undefined && isGone(answer)) {
    // Addresses are signed for a while: a provider that keeps the video has another.
    const fresh = await content.poller.freshUrl(task, part);
    if (fresh !== undefined && fresh !== url) answer = await content.tools.download(call, fresh, headers);
  }
  return passed(answer);
}

function notReady({ state, error }: Task): GatewayError {
  const message =
    state === 'failed' || state === 'cancelled'
      ? `There is no video: ${error?.message ?? 'the generation failed.'}`
      : 'The video is not finished yet.';
  return new GatewayError('video_not_ready', message);
}

type Guarded = NonNullable<ReturnType<typeof guardedRequest>>;

function guardedRequest(task: Task, part: Part, url: string | undefined, { tools }: ContentTools) {
  const codec = codecOf(task, tools);
  return codec?.contentRequest?.(requestFor(task, 'get-video'), part, url);
}

/** Sends the request through the channel, which adds its key. */
async function openGuarded(
  call: Call,
  task: Task,
  { path, query = {}, headers = {} }: Guarded,
  range: Readonly<Record<string, string>>,
  { tools }: ContentTools,
): Promise<Upstream> {
  const target = targetOf(task, tools);
  const answer = await target.channel.open(call.with({ target }), {
    operation: 'get-video',
    format: task.upstreamFormat,
    model: task.upstreamModel,
    stream: false,
    path,
    query,
    headers: { ...headers, ...range, accept: '*/*' },
    method: 'GET',
    body: '',
  });
  const { location } = answer.headers;
  // The target of the redirect is public to all who know it, so the key is not sent there.
  return answer.status >= 300 && answer.status < 400 && typeof location === 'string'
    ? tools.download(call, location, range)
    : answer;
}

function targetOf(task: Task, { catalog }: ContentTools['tools']): Target {
  const channel = catalog.channels.find(({ id }) => id === task.channel);
  const key = channel?.keys.find(({ id }) => id === task.key) ?? channel?.keys[0];
  if (channel === undefined || key === undefined)
    throw new GatewayError(
      'no_available_channel',
      'The channel that made this video is not there any more.',
      {
        retryable: false,
      },
    );
  return { channel, key, model: task.upstreamModel, traits: channel.traits(task.upstreamModel) };
}

/** Returns the headers that select a range of the file. */
function rangeHeaders({ wire: { headers } }: Call): Readonly<Record<string, string>> {
  const { range, 'if-range': ifRange } = headers;
  return {
    ...(range === undefined ? {} : { range }),
    ...(typeof ifRange === 'string' ? { 'if-range': ifRange } : {}),
  };
}

function isGone({ status }: Upstream): boolean {
  return status === 401 || status === 403 || status === 404 || status === 410;
}

function passed({ status, headers, bytes }: Upstream): Observable<GatewayEvent> {
  if (status !== 200 && status !== 206 && status !== 416) {
    if (status === 404 || status === 410 || status === 403)
      throw new GatewayError('not_found', 'The provider does not store this video any more.');
    throw new GatewayError('upstream_error', 'The provider did not return the video.', {
      origin: 'upstream',
    });
  }
  const answer: GatewayEvent = {
    type: 'answer',
    status,
    headers: { ...headers, 'content-type': mediaType(headers['content-type']) },
  };
  return concat(of(answer), bytes.pipe(map((chunk): GatewayEvent => ({ type: 'bytes', bytes: chunk }))));
}

/** Returns the media type for the client. Only types of video, because an HTML page would run with the origin of the gateway. */
function mediaType(type: string | string[] | undefined): string {
  if (type === undefined) return 'video/mp4';
  return typeof type === 'string' && /^(video|image)\/[\w.+-]+$/i.test(type) && !/svg/i.test(type)
    ? type
    : 'application/octet-stream';
}

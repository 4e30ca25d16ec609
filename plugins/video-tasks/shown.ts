/** Converts a video task into what its owner may see: URLs of the gateway, or those of the provider. */
import type { Call } from 'sluice';
import { codecFor, type InternalTools } from 'sluice/internal';
import type { Task } from './core-types.ts';
import { requestFor } from './poller.ts';

/** Options for the URLs of finished videos. */
export interface Delivery {
  /** `proxy`: through the gateway, so that clients do not see the provider's URLs; `redirect`: from the provider. */
  readonly delivery: 'proxy' | 'redirect';
  /** Base URL of the gateway for clients. Undefined: the address that the request was sent to. */
  readonly publicUrl: string | undefined;
}

/** Services by which the codec of a task is found. */
type Knowing = Pick<InternalTools, 'catalog' | 'format'>;

/** Returns the codec for requests about a task: that of a format, or of the channel. */
export function codecOf({ channel: id, upstreamFormat }: Task, { catalog, format }: Knowing) {
  const channel = catalog.channels.find((one) => one.id === id);
  return codecFor(upstreamFormat, 'get-video', channel, format);
}

/** Returns true when the content of a task can be fetched with the provider's key only. */
export function isGuarded(task: Task, tools: Knowing): boolean {
  const codec = codecOf(task, tools);
  return codec?.contentRequest?.(requestFor(task, 'get-video'), 'video', task.url) !== undefined;
}

/** Returns a task as its owner may see it, with URLs that the client can fetch. */
export function shownTask(call: Call, task: Task, { delivery, publicUrl }: Delivery, tools: Knowing): Task {
  const { url, thumbnailUrl, ...rest } = task;
  if (task.state !== 'completed') return rest;
  const guarded = isGuarded(task, tools);
  if (delivery === 'redirect' && !guarded) return task;
  const content = `${publicUrl ?? originOf(call)}/v1/videos/${task.id}/content`;
  return {
    ...rest,
    ...(url === undefined && !guarded ? {} : { url: content }),
    ...(thumbnailUrl === undefined ? {} : { thumbnailUrl: `${content}?variant=thumbnail` }),
  };
}

/** Returns the origin of the gateway by the request's headers; empty for an invalid `host`. */
function originOf({ wire: { headers } }: Call): string {
  const scheme = headers['x-forwarded-proto'] === 'https' ? 'https' : 'http';
  const host = headers.host ?? '';
  return /^[\w.:[\]-]{1,255}$/.test(host) ? `${scheme}://${host}` : '';
}

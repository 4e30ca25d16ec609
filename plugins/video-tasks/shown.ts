import type { Call } from 'sluice';
import { codecFor, type InternalTools } from 'sluice/internal';
import type { Task } from './core-types.ts';
import { requestFor } from './poller.ts';

/** How clients get at a finished video. */
export interface Delivery {
  /** `proxy`: through the gateway, so that nobody sees the provider's addresses; `redirect`: there. */
  readonly delivery: 'proxy' | 'redirect';
  /** Where clients reach the gateway; undefined: where this one did. */
  readonly publicUrl: string | undefined;
}

/** What knows how a task's provider is asked about it. */
type Knowing = Pick<InternalTools, 'catalog' | 'format'>;

/** The words in which a task's provider is asked about it: a format's, or those of its channel alone. */
export function codecOf({ channel: id, upstreamFormat }: Task, { catalog, format }: Knowing) {
  const channel = catalog.channels.find((one) => one.id === id);
  return codecFor(upstreamFormat, 'get-video', channel, format);
}

/** True when the bytes of a task are only for whoever shows the provider's key. */
export function isGuarded(task: Task, tools: Knowing): boolean {
  const codec = codecOf(task, tools);
  return codec?.contentRequest?.(requestFor(task, 'get-video'), 'video', task.url) !== undefined;
}

/** The task as its owner may see it: with addresses that lead somewhere. */
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

/** Where the client found the gateway. */
function originOf({ wire: { headers } }: Call): string {
  const scheme = headers['x-forwarded-proto'] === 'https' ? 'https' : 'http';
  const host = headers.host ?? '';
  return /^[\w.:[\]-]{1,255}$/.test(host) ? `${scheme}://${host}` : '';
}

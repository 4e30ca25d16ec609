import type { Call, InternalTools, Task } from 'sluice/internal';
import { requestFor } from './poller.ts';

/** How clients get at a finished video. */
export interface Delivery {
  /** `proxy`: through the gateway, so that nobody sees the provider's addresses; `redirect`: there. */
  readonly delivery: 'proxy' | 'redirect';
  /** Where clients reach the gateway; undefined: where this one did. */
  readonly publicUrl: string | undefined;
}

/** True when the bytes of a task are only for whoever shows the provider's key. */
export function isGuarded(task: Task, format: InternalTools['format']): boolean {
  const codec = format(task.upstreamFormat)?.codecs['get-video'];
  return codec?.contentRequest?.(requestFor(task, 'get-video'), 'video', task.url) !== undefined;
}

/** The task as its owner may see it: with addresses that lead somewhere. */
export function shownTask(
  call: Call,
  task: Task,
  { delivery, publicUrl }: Delivery,
  format: InternalTools['format'],
): Task {
  const { url, thumbnailUrl, ...rest } = task;
  if (task.state !== 'completed') return rest;
  const guarded = isGuarded(task, format);
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

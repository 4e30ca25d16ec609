import { randomUUID } from 'node:crypto';
import { Exchange, firstView } from '../call/call.ts';
import type { Next } from '../sdk/define.ts';
import type { Format } from '../sdk/format.ts';
import type { VideoTaskRequest } from '../model/video.ts';
import type { DirectCall } from './direct-call.ts';
import { addressed, type Target } from './target.ts';

/**
 * Asks a provider about a task of its own, in the format that the task was made in there, also on a channel that is switched off. It
 * meets the translate stage alone; the reply is one `result` with a VideoReport. Throws when the channel has no such call.
 */
export type TaskCalls = (request: VideoTaskRequest, target: Target) => DirectCall;

/** Binds task calls to the gateway's formats and to its translate stage. */
export function createTaskCalls(
  formatNamed: (name: string) => Format | undefined,
  translate: Next,
): TaskCalls {
  return (request, target) => {
    const { operation } = request;
    const format = formatNamed(request.format);
    const codec = format?.codecs[operation];
    if (format === undefined || codec === undefined)
      throw new Error(`The format "${request.format}" has no ${operation}.`);
    const exchange = new Exchange(`req_${randomUUID().replaceAll('-', '')}`, operation, format, codec, {
      method: 'GET',
      path: '/',
      query: new URLSearchParams(),
      headers: {},
      params: {},
      ip: '127.0.0.1',
      bytes: Buffer.alloc(0),
      body: {},
    });
    exchange.model = request.model;
    exchange.decoded = request;
    const call = firstView(exchange).with({ decoded: true });
    return {
      call,
      send: () => translate(addressed(call, target)),
      end: () => exchange.end(),
    };
  };
}

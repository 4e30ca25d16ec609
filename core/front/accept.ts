import type { Context } from 'koa';
import type { Exchange } from '../call/exchange.ts';
import { firstView } from '../call/view.ts';
import type { Next } from '../sdk/define.ts';
import type { Front } from './front.ts';
import { takeArrival } from './arrivals.ts';
import { linger } from './refusal.ts';
import { Reply } from './reply.ts';

/** Accepts one call: waits until overload protection admits it, runs the pipeline, and subscribes to the response. */
export function accept(ctx: Context, front: Front, exchange: Exchange, pipeline: Next): void {
  ctx.respond = false;
  const { replies, replyOptions, parts } = front;
  const { overload } = parts;
  let entered = overload.enter(takeArrival(ctx.req.socket));
  const reply = new Reply(exchange, ctx.res, replyOptions, () => {
    replies.remove(entry);
    if (entered) overload.leave();
    if (!ctx.req.complete) linger(ctx.req);
  });
  const entry = replies.add(reply);
  const call = firstView(exchange);
  const granted = (): void => {
    entered = true;
  };
  // Without `await`: it would keep a frame and two more promises for each call until its provider answers.
  const answered = entered ? pipeline(call) : overload.wait(call, granted).then(() => pipeline(call));
  answered.then(
    (events) => {
      try {
        reply.send(events);
      } catch (error) {
        reply.fail(error);
      }
    },
    (error: unknown) => reply.fail(error),
  );
}

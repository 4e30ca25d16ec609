import type { Context } from 'koa';
import type { Exchange } from '../call/exchange.ts';
import { firstView } from '../call/view.ts';
import type { Next } from '../sdk/define.ts';
import type { Front } from './front.ts';
import { takeArrival } from './arrivals.ts';
import { linger } from './refusal.ts';
import { Reply } from './reply.ts';

/** One call, from the request to the subscription that writes its reply: waits for its turn, and sends the first view down the pipeline. */
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

/** Runs a plugin's tool as a call of its own, through a part of the pipeline. */
import { of } from 'rxjs';
import { caller } from '../sdk/caller.ts';
import { callKey } from '../sdk/call-key.ts';
import type { Next } from '../sdk/define.ts';
import type { Call } from '../sdk/call.ts';
import type { ToolRuns } from '../sdk/direct-call.ts';
import { gathered } from '../sdk/operators.ts';
import { toolPrice } from '../sdk/tool-price.ts';
import type { GatewayEvent } from '../model/event.ts';
import { ownExchange } from './own-exchange.ts';
import { firstView } from './view.ts';

/** The work of a call whose operation is `tool`. */
const toolWork = callKey<(call: Call) => Promise<void>>('tool work');

/** Binds runs of tools to the part of the pipeline that they meet, which ends in {@link doToolWork}. */
export function createToolRuns(pipeline: Next): ToolRuns {
  return async (parent, { name, microDollars = 0 }, run) => {
    const { format, codec, wire } = parent;
    const exchange = ownExchange('tool', format, codec, {
      ...wire,
      headers: { ...wire.headers },
      bytes: Buffer.alloc(0),
      body: {},
      outline: undefined,
    });
    exchange.parent = parent;
    exchange.model = name;
    const key = parent.get(caller);
    if (key !== undefined) exchange.values.set(caller, key);
    exchange.values.set(toolPrice, microDollars);
    const done: { value?: Awaited<ReturnType<typeof run>> } = {};
    exchange.values.set(toolWork, async (call) => {
      done.value = await run(call);
    });
    const call = firstView(exchange);
    const forget = parent.onEnd(() => exchange.end());
    try {
      await gathered(call, await pipeline(call));
      return done.value as Awaited<ReturnType<typeof run>>;
    } finally {
      forget();
      exchange.end();
    }
  };
}

/** Does the work of a tool's call, behind all plugins that it meets. */
export const doToolWork: Next = async (call) => {
  await call.get(toolWork)?.(call);
  return of<GatewayEvent[]>({ type: 'result', value: null });
};

import type { Context } from 'koa';
import { EMPTY, lastValueFrom } from 'rxjs';
import { Exchange } from '../call/exchange.ts';
import { firstView } from '../call/view.ts';
import { channelStanding } from '../routing/health/index.ts';
import type { Channel } from '../sdk/call.ts';
import type { Health } from '../sdk/health.ts';
import { endpointCodec } from './endpoints.ts';
import type { Front, FrontParts } from './front.ts';
import { callerOf, wireOf } from './upgrade.ts';
import { requestId } from './wire.ts';

/** Returns the handler of `/readyz`: whether calls can be served, and for those who may know it how the channels stand. */
export function readinessRoute(front: Front): (ctx: Context) => Promise<void> {
  const { gateway, parts } = front;
  const identify = gateway.identified(() => Promise.resolve(EMPTY));

  /** Returns true for a client with a valid key, and for operators. Does no lookup for a request without credentials. */
  const knows = async (ctx: Context): Promise<boolean> => {
    const operators = await Promise.all(
      gateway.operators.map((isOperator) => isOperator(ctx).catch(() => false)),
    );
    if (operators.includes(true)) return true;
    const { req, path } = ctx;
    const { headers, url = '' } = req;
    if (!credentials.some((name) => headers[name] !== undefined) && !/[?&]key=/.test(url)) return false;
    const format = front.formatNamed('chat-completions');
    const wire = wireOf('GET', { ...callerOf(req, front.clientAddress(req)), path });
    const exchange = new Exchange(requestId(), 'state', format, endpointCodec(format), wire);
    try {
      await lastValueFrom(await identify(firstView(exchange)), { defaultValue: undefined });
      return true;
    } catch {
      return false;
    } finally {
      exchange.end();
    }
  };

  return async function readiness(ctx) {
    const [database, isKnown] = await Promise.all([databaseState(parts.stores), knows(ctx)]);
    const isEnding = front.announced || front.stopping;
    const ready = !isEnding && database === 'ok';
    ctx.status = ready ? 200 : 503;
    ctx.body = {
      status: ready ? 'ready' : isEnding ? 'draining' : 'not ready',
      database,
      shared: parts.rates.state,
      ...(isKnown
        ? {
            channels: standings(gateway.catalog.channels, parts.health),
            // Names alone: the sentences say how much others use.
            warnings: parts.upkeep.warned.map(({ what }) => what),
          }
        : {}),
    };
  };
}

/** Headers that may carry a key. */
const credentials = [
  'authorization',
  'x-api-key',
  'x-goog-api-key',
  'x-g-api-key',
  'api-key',
  'x-sluice-key',
] as const;

/** Returns the state of each channel: that of its best key. `worst` is set when not all of its keys are available. */
function standings(channels: readonly Channel[], health: Health): readonly object[] {
  const report = health.report();
  return channels.map((channel) => {
    const { best, worst } = channelStanding(report, channel);
    return { id: channel.id, kind: channel.kind, standing: best, ...(worst === best ? {} : { worst }) };
  });
}

async function databaseState(stores: FrontParts['stores']): Promise<'ok' | 'failed'> {
  try {
    await stores.health();
    return 'ok';
  } catch {
    return 'failed';
  }
}

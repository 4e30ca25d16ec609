import { z } from 'zod';
import { GatewayError, secret, toGatewayError } from 'sluice';
import { definePlugin, accountOf, type Call, type InternalTools, type PeerAnswer } from 'sluice/internal';
import { createAccess } from './access.ts';
import { countedByPlugins } from './plugins.ts';
import { processMetrics } from './process.ts';
import { measured, textOf } from './scrape.ts';
import { Series } from './series.ts';

/** Under this name the processes ask each other. */
const topic = 'metrics';

const options = z.strictObject({
  /** Whether there are metrics at all. */
  enabled: z.boolean().default(true),
  /** Whoever sends it as a bearer token may read the metrics. Without one only private addresses may. */
  token: secret(z.string().min(16, 'must have at least 16 characters')).optional(),
});

/**
 * The operator's Prometheus finds numbers about calls, channels and processes under `GET /metrics`, one for all workers together. Callers
 * notice nothing. A call is counted once, when it has ended, with the tokens that others have asked for: metrics alone change no request.
 */
export default definePlugin({
  name: 'metrics',
  stage: 'observe',
  options,
  setup({ enabled, token }, tools: InternalTools) {
    if (!enabled) return (call, next) => next(call);
    const { settings, log, notices, route, onClose } = tools;
    const series = new Series(tools);
    const mayRead = createAccess(token, settings.trustedProxies);
    onClose(notices.on('attempt-failed', ({ channel, error }) => series.countFailure(channel, error.code)));

    onClose(notices.on('end-of-call-failed', () => series.countEndError()));
    onClose(notices.on('refusal-learned', ({ channel }) => series.countLearned(channel)));

    const { peers } = tools.processes;
    const measure = async (): Promise<PeerAnswer> =>
      measured([series.registry, processMetrics(), countedByPlugins(tools.counters)]);
    const stopAnswering = peers.answer(topic, () =>
      measure().catch((error: unknown) => {
        log.error({ error }, 'the metrics of this process could not be read');
        throw error;
      }),
    );
    onClose(async () => {
      stopAnswering();
      await peers.leave(topic, (await measure()).totals ?? {});
    });

    const gather = async (): Promise<string> => {
      const gathered = await peers.gather(topic);
      if (gathered === undefined || gathered.answers.length === 0)
        throw new GatewayError('server_is_overloaded', 'No process told its metrics in time: try again.', {
          retryAfter: 1,
        });
      return textOf(gathered);
    };
    let gathering: Promise<string> | undefined;
    const text = (): Promise<string> =>
      (gathering ??= gather().finally(() => {
        gathering = undefined;
      }));
    route('GET', '/metrics', async (ctx) => {
      ctx.set({ 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' });
      try {
        mayRead(ctx.req);
        const metrics = await text();
        ctx.set('content-type', series.registry.contentType);
        ctx.body = metrics;
      } catch (thrown) {
        const error = toGatewayError(thrown);
        if (error.code === 'internal_error')
          log.error({ error: thrown }, 'the metrics could not be gathered');
        ctx.set(error.headers);
        ctx.status = error.status;
        ctx.body = `${error.message}\n`;
      }
    });

    return function metered(call: Call, next) {
      const account = accountOf(call);
      account.onSettled(() => series.count(call, account));
      return next(call);
    };
  },
});

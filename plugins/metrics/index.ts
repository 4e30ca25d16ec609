import { z } from 'zod';
import { definePlugin, GatewayError, secret, toGatewayError, type WorkerAnswer } from 'sluice';
import { createAccess } from './access.ts';
import { countedByPlugins } from './plugins.ts';
import { processMetrics } from './process.ts';
import { measured, textOf, totalsOf } from './scrape.ts';
import { Series } from './series.ts';

/** Name of the question that workers send to each other. */
const topic = 'metrics';

const options = z.strictObject({
  /** Serves `GET /metrics`. */
  enabled: z.boolean().default(true),
  /** Bearer token for reading the metrics. Default: none, and only private IP addresses can read them. */
  token: secret(z.string().min(16, 'must have at least 16 characters')).optional(),
});

/**
 * Serves metrics of calls, channels and processes for Prometheus at `GET /metrics`, summed over all workers. Callers notice nothing. A call
 * is counted once, when it has ended. Its tokens are counted only if the client or another plugin requests usage, because metrics do not
 * change requests.
 */
export default definePlugin({
  name: 'metrics',
  stage: 'observe',
  options,
  setup({ enabled, token }, tools) {
    if (!enabled) return (call, next) => next(call);
    const { log, operations, workers } = tools;
    const series = new Series(tools);
    const mayRead = createAccess(token, (request) => tools.clientAddress(request));
    tools.onNotice('attempt-failed', ({ channel, error }) => series.countFailure(channel, error.code));
    tools.onNotice('end-of-call-failed', () => series.countEndError());
    tools.onNotice('refusal-learned', ({ channel }) => series.countLearned(channel));

    const ofProcess = processMetrics(() => operations.figures().lostLogLines);
    const registries = () => [series.registry, ofProcess, countedByPlugins(tools.metrics.all())];
    const measure = async (): Promise<WorkerAnswer> => measured(registries());
    const stopAnswering = workers.answer(topic, () =>
      measure().catch((error: unknown) => {
        log.error({ error }, 'the metrics of this process could not be read');
        throw error;
      }),
    );
    tools.onClose(async () => {
      stopAnswering();
      await workers.leave(topic, await totalsOf(registries()));
    });

    const gather = async (): Promise<string> => {
      const gathered = await workers.gather(topic);
      if (gathered === undefined || gathered.answers.length === 0)
        throw new GatewayError('server_is_overloaded', 'No process reported its metrics in time. Retry.', {
          retryAfter: 1,
        });
      return textOf(gathered);
    };
    let gathering: Promise<string> | undefined;
    const text = (): Promise<string> =>
      (gathering ??= gather().finally(() => {
        gathering = undefined;
      }));
    tools.route('GET', '/metrics', async (ctx) => {
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

    return function metered(call, next) {
      call.onSettled((settled) => series.count(call, settled));
      return next(call);
    };
  },
});

import { connect } from 'node:net';
import { catchError, EMPTY, of } from 'rxjs';
import { type GatewayEvent, type PluginEntry } from 'sluice';
import { definePlugin, type InternalTools } from 'sluice/internal';

/** Ways to spoil the gateway itself, by which the suite proves that it would notice. */
export const seams = ['clean-end', 'refusal-as-success', 'leak', 'lost-record'] as const;
export type Seam = (typeof seams)[number];

/** The plugin that spoils it; undefined for what is not done by a plugin. */
export function seamPlugin(seam: Seam, upstream: string): PluginEntry | undefined {
  switch (seam) {
    case 'clean-end':
      return definePlugin({
        name: 'seam',
        stage: 'observe',
        setup: () => async (call, next) => (await next(call)).pipe(catchError(() => EMPTY)),
      })();
    case 'refusal-as-success':
      return definePlugin({
        name: 'seam',
        stage: 'observe',
        setup: () => (call, next) =>
          next(call).catch(() => of<GatewayEvent>({ type: 'bytes', bytes: Buffer.from('{"oops":true}') })),
      })();
    case 'leak':
      return definePlugin({
        name: 'seam',
        stage: 'shape',
        setup: (_options, { ledger, apiKeys }: InternalTools) => {
          const { port } = new URL(upstream);
          return async (call, next) => {
            connect(Number(port), '127.0.0.1').on('error', () => {});
            const [key] = await apiKeys.list();
            if (key !== undefined)
              await ledger.reserve(key.id, key.budgets ?? [], { microDollars: 1, tokens: 1 }, 3_600_000);
            return next(call);
          };
        },
      })();
    case 'lost-record':
      return undefined;
  }
}

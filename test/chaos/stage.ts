import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { GatewayConfig } from '../../core/sdk/config.ts';
import { startChild, type Child } from './child.ts';
import type { GatewayOrder, GatewayReady } from './gateway-process.ts';
import type { Seam } from './seams.ts';

/** The provider and the gateway, each in a process of its own. */
export interface Stage {
  readonly upstream: Child<{ readonly url: string; readonly refusing: string }>;
  readonly gateway: Child<GatewayReady>;
  /** Files that the gateway left where temporary files go. */
  temporary(): readonly string[];
  end(): Promise<void>;
}

/** Options of the stage. */
export interface StageOptions {
  readonly settings?: GatewayConfig;
  readonly keys?: number;
  readonly seam?: Seam | undefined;
}

/** Starts both; whoever builds a stage ends it. */
export async function buildStage({ settings = {}, keys = 3, seam }: StageOptions): Promise<Stage> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-chaos-'));
  const temporary = join(folder, 'tmp');
  mkdirSync(temporary);
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  process.once('exit', remove);
  const upstream = await startChild<{ url: string; refusing: string }>('./faulty-upstream.ts', {});
  const order: GatewayOrder = {
    folder,
    upstream: upstream.ready.url,
    refusing: upstream.ready.refusing,
    settings,
    keys,
    ...(seam === undefined ? {} : { seam }),
  };
  try {
    const gateway = await startChild<GatewayReady>(
      './gateway-process.ts',
      { CHAOS_GATEWAY: JSON.stringify(order), TMPDIR: temporary },
      ['--expose-gc'],
    );
    return {
      upstream,
      gateway,
      temporary: () => readdirSync(temporary, { recursive: true }).map(String),
      async end() {
        await Promise.all([gateway.end(), upstream.end()]);
        process.off('exit', remove);
        remove();
      },
    };
  } catch (error) {
    await upstream.end();
    remove();
    throw error;
  }
}

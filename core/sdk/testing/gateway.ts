/** Starts a whole gateway in the process of a test, with a database in memory and a recorded log. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { readWithSecrets } from '../../config/load-config.ts';
import type { GatewayConfig } from '../config.ts';
import { createLog } from '../../log.ts';
import { startServer, type RunningServer } from '../../server.ts';

/**
 * A gateway started by a test, on a free port, with a database in memory.
 *
 * @example
 * const answer = await fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${gateway.key}` } });
 */
export interface TestGateway extends RunningServer {
  /** An API key that may use every model. */
  readonly key: string;
  /** Parsed lines of the log. */
  readonly lines: Record<string, unknown>[];
  /** Empties `lines`, including those of answered calls, which are written one turn of the event loop later. */
  forgetLines(): Promise<void>;
}

/**
 * Starts a gateway with a config and the plugins that run by default. Close it at the end. Unless the config sets `overload`, it refuses no
 * call because the machine is busy, which would make tests fail at random.
 *
 * @example
 * const gateway = await startGateway({ plugins: [redact({ words: ['moonshine'] })], channels: [demo()] });
 */
export async function startGateway(config: GatewayConfig): Promise<TestGateway> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-test-'));
  const lines: Record<string, unknown>[] = [];
  const log = createLog('debug', {
    write(line: string) {
      lines.push(JSON.parse(line) as Record<string, unknown>);
    },
  });
  const loaded = await readWithSecrets(
    {
      listen: { port: 0, host: '127.0.0.1' },
      database: 'sqlite::memory:',
      data: join(folder, 'data'),
      ...config,
      overload: { lag: 600_000, memory: 1, ...config.overload },
    },
    join(folder, 'gateway.config.ts'),
    { log },
  );
  const server = await startServer(loaded, log);
  const { value } = await server.apiKeys.create({ name: 'test' });
  return {
    ...server,
    key: value,
    lines,
    async forgetLines() {
      await setImmediate();
      lines.length = 0;
    },
    async close() {
      await server.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

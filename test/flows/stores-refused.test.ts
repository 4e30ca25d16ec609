import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { startRedis, withoutRedis, type TestRedis } from '../support/redis.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { shell } from '../core/cli/_shell.ts';
import { startProcess } from './_process.ts';

const sluice = shell();

const missing = withoutRedis();

describe.skipIf(missing !== undefined)(
  `a gateway whose Redis refuses it${missing === undefined ? '' : ` (${missing})`}`,
  () => {
    let redis: TestRedis;
    beforeAll(async () => {
      redis = await startRedis();
    });
    afterAll(() => redis.close());

    test('does not start, and says what to correct without the password', async () => {
      const url = redis.url.replace(/:[^:@]*@/, ':certainly-wrong@');
      const started = startProcess(`shared: { url: '${url}' }`);
      await expect(started).rejects.toThrow(
        /gateway\.config\.mjs: The Redis at 127\.0\.0\.1:\d+ refuses the user or the password: correct "shared\.url"/,
      );
      await expect(started).rejects.not.toThrow(/certainly-wrong/);
    });

    test('is told by sluice check', async () => {
      const config = join(temporaryFolder(), 'gateway.config.mjs');
      const wrong = redis.url.replace(/:[^:@]*@/, ':certainly-wrong@');
      writeFileSync(config, `export default { database: 'sqlite::memory:', shared: { url: '${wrong}' } };`);
      const { code, stderr } = await sluice(['check', '--config', config]);
      expect(code).toBe(1);
      expect(stderr).toMatch(/refuses the user or the password/);
      expect(stderr).not.toContain('certainly-wrong');
    });

    test('keeps what it has when a reload brings such a Redis', async () => {
      const gateway = await startProcess(`shared: { url: '${redis.url}' }`);
      onTestFinished(() => gateway.end());
      const config = readFileSync(gateway.config, 'utf8');
      writeFileSync(gateway.config, config.replace(/:[^:@/]*@/, ':certainly-wrong@'));
      gateway.signal('SIGHUP');
      await eventually(() => gateway.output.join('').includes('refuses the user or the password'));
      const ready = (await (await fetch(`${gateway.url}/readyz`)).json()) as Record<string, unknown>;
      expect(ready).toMatchObject({ status: 'ready', shared: 'ok' });
    });

    test('starts when it is only gone for now', async () => {
      const gateway = await startProcess(`shared: { url: 'redis://127.0.0.1:${await freePort()}' }`);
      onTestFinished(() => gateway.end());
      const ready = (await (await fetch(`${gateway.url}/readyz`)).json()) as Record<string, unknown>;
      expect(ready).toMatchObject({ status: 'ready', shared: 'degraded' });
    });
  },
);

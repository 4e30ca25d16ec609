import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { startProcess, type GatewayProcess } from '../../flows/_process.ts';
import { startUpstream } from '../../support/upstream.ts';
import { startCollector } from './_collector.ts';
import { respond } from './_gateway.ts';
import { everything } from '../../support/tries.ts';

const plugin = fileURLToPath(new URL('../../../plugins/telemetry/index.ts', import.meta.url));
const model = 'gpt-4.1';

/** A gateway in a process of its own, with two workers, as an operator runs it. */
async function begin(
  endpoint: string,
  script: Parameters<typeof startUpstream>[0] = respond,
): Promise<GatewayProcess> {
  const provider = await startUpstream(script);
  const gateway = await startProcess(
    `workers: 2, database: 'sqlite:./sluice.db',
     plugins: [(await import('${plugin}')).default({ endpoint: '${endpoint}' })],
     channels: [openai({ key: 'k', baseUrl: '${provider.url}/v1', models: ['${model}'] })]`,
  );
  onTestFinished(async () => {
    await gateway.end();
    await provider.close();
  });
  return gateway;
}

const chat = ({ url, key }: GatewayProcess, stream = false): Promise<Response> =>
  fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    // A connection of its own, so that both workers have calls.
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', connection: 'close' },
    body: JSON.stringify({ model, stream, messages: [{ role: 'user', content: 'Hi' }] }),
  });

describe('a gateway that is stopped', () => {
  test('exports everything that waits, from every worker, also of calls that end meanwhile', async () => {
    const collector = await startCollector();
    const held = Promise.withResolvers<void>();
    const arrived = Promise.withResolvers<void>();
    const gateway = await begin(collector.url, async (request, response) => {
      const { stream = false } = JSON.parse(request.body.toString()) as { stream?: boolean };
      if (stream) {
        arrived.resolve();
        await held.promise;
      }
      respond(request, response);
    });
    const open = chat(gateway, true).then((answer) => answer.text());
    await arrived.promise;
    for (let round = 0; round < 5; round += 1) {
      // oxlint-disable-next-line no-await-in-loop -- connections that come one after another go to all workers
      const answers = await Promise.all(Array.from({ length: 8 }, () => chat(gateway)));
      // oxlint-disable-next-line no-await-in-loop -- see above
      for (const answer of answers) expect(await answer.json()).toHaveProperty('usage');
    }
    gateway.signal('SIGTERM');
    held.resolve();
    expect(await open).toContain('[DONE]');
    expect(await gateway.exited).toBe(0);
    await collector.waitForSpans(82);
    const calls = collector.spans.filter(({ kind }) => kind === 'SERVER');
    expect([calls.length, collector.spans.length, collector.records.length]).toEqual([41, 82, 41]);
    // Metrics of both workers, each as an instance of its own.
    const instances = new Set(calls.map(({ resource }) => resource['service.instance.id']));
    expect(instances.size).toBe(2);
    const durations = collector.points.filter(({ metric }) => metric === 'gen_ai.server.request.duration');
    expect(durations.reduce((sum, { count }) => sum + count, 0)).toBe(41);
    expect(new Set(durations.map(({ resource }) => resource['service.instance.id']))).toEqual(instances);
  });

  test.each([{ hangs: true }, ...(everything ? [{ status: 503 }] : [])])(
    'ends by itself where the receiver takes nothing: %o',
    async (behaviour) => {
      const collector = await startCollector(behaviour);
      const gateway = await begin(collector.url);
      await (await chat(gateway)).text();
      gateway.signal('SIGTERM');
      expect(await gateway.exited).toBe(0);
      expect(collector.got.length).toBeGreaterThan(0);
      expect(gateway.output.join('')).toContain('telemetry was dropped');
    },
  );
});

import { describe, expect, onTestFinished, test } from 'vitest';
import cache from '../../../plugins/cache/index.ts';
import guard from '../../../plugins/guard/index.ts';
import { startGateway } from '../../support/gateway.ts';
import { formats, startProvider, usual } from './_provider.ts';
import { sendAndRead } from './_clients.ts';

describe('behind a guard that masks', () => {
  test.each(formats)('what is kept is masked, and each client of %s reads its own words', async (format) => {
    const provider = await startProvider('chat-completions', ({ body }) => {
      const placeholder = /\[EMAIL_\w+\]/.exec(body.toString())?.[0] ?? 'nobody';
      return usual(`I wrote to ${placeholder}.`);
    });
    onTestFinished(() => provider.close());
    const gateway = await startGateway({
      plugins: [
        cache(),
        guard({
          checks: [{ name: 'pii', kind: 'entities', entities: ['email'], action: 'mask', restore: true }],
        }),
      ],
      channels: [provider.channel],
    });
    onTestFinished(() => gateway.close());
    for (const [address, kind] of [
      ['ann@example.com', 'miss'],
      // In Responses a placeholder stays the same for an address, because conversations go on by id.
      ['bob@example.org', format === 'responses' ? 'miss' : 'hit'],
    ] as const)
      for (const stream of [false, true]) {
        // oxlint-disable-next-line no-await-in-loop -- one after the other
        const read = await sendAndRead(format, gateway, { text: `Write to ${address}.`, stream });
        expect(read.text).toBe(`I wrote to ${address}.`);
        expect([address, stream, read.cache]).toEqual([address, stream, stream ? 'hit' : kind]);
      }
    const kept: unknown[] = [];
    for await (const [, entry] of gateway.stores.namespace('cache-responses').iterator?.(undefined) ?? [])
      kept.push(entry);
    expect(kept).toHaveLength(format === 'responses' ? 2 : 1);
    expect(JSON.stringify(kept)).not.toContain('@example');
    expect(provider.requests.map(({ body }) => body.toString()).join('\n')).not.toContain('@example');
  });
});

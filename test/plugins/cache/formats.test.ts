import { describe, expect, onTestFinished, test } from 'vitest';
import cache from '../../../plugins/cache/index.ts';
import { startGateway } from '../../support/gateway.ts';
import { sendAndRead } from './_clients.ts';
import { formats, startProvider } from './_provider.ts';

describe.each(formats)('over a channel that speaks %s', (channelFormat) => {
  test.each(formats.flatMap((format) => [true, false].map((stream) => [format, stream] as const)))(
    'what a client of %s (stream: %s) was answered, all other clients get, whole and as a stream',
    async (format, stream) => {
      const provider = await startProvider(channelFormat);
      onTestFinished(() => provider.close());
      const gateway = await startGateway({ plugins: [cache()], channels: [provider.channel] });
      onTestFinished(() => gateway.close());
      const first = await sendAndRead(format, gateway, { stream });
      expect(first).toMatchObject({ text: 'Hello there.', cache: 'miss', tokens: [12, 7] });
      const ids = new Set([first.id]);
      for (const other of formats)
        for (const isStream of [false, true]) {
          const again = await sendAndRead(other, gateway, { stream: isStream });
          expect([other, isStream, again.cache, again.text, again.tokens]).toEqual([
            other,
            isStream,
            'hit',
            'Hello there.',
            [12, 7],
          ]);
          expect(Number(again.headers.get('age'))).toBeGreaterThanOrEqual(0);
          ids.add(again.id);
        }
      expect(provider.requests).toHaveLength(1);
      // Each response has an id of its own.
      expect(ids.size).toBe(1 + 2 * formats.length);
      const different = await sendAndRead(format, gateway, { stream, text: 'What is old?' });
      expect(different.cache).toBe('miss');
      expect(provider.requests).toHaveLength(2);
    },
  );
});

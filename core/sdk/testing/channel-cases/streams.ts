import assert from 'node:assert/strict';
import { reply, text } from '../script.ts';
import { contentOf } from './answers.ts';
import { going } from './provider-actions.ts';
import { lastPost, type MakeCase } from './scene.ts';
import type { ChannelCase } from './tested.ts';

/** Streams: whole, cut, and left by the client. */
export function streamCases(one: MakeCase): readonly ChannelCase[] {
  const words = reply(text('Good ', 'day ', 'to you.'));
  let release = (): void => {};
  return [
    one(
      'passes a stream on as it comes',
      {
        streams: words,
        // The provider goes on only when the client has read what came first.
        step: (index) => (index === 2 ? new Promise((resolve) => (release = () => resolve('on'))) : going()),
      },
      async ({ request, received }) => {
        const answer = await request({ stream: true });
        let read = '';
        const decoder = new TextDecoder();
        for await (const bytes of answer.body ?? []) {
          read += decoder.decode(bytes, { stream: true });
          release();
        }
        assert.equal(received().stream, true);
        assert.equal(contentOf(read), 'Good day to you.');
        assert.match(read, /data: \[DONE\]\s*$/);
      },
    ),
    one(
      'tells the client of a stream that was cut',
      { streams: words, step: async (index) => (index === 2 ? 'cut' : 'on') },
      async ({ request }) => {
        const answer = await request({ stream: true });
        const read = await answer.text().catch(() => 'broken');
        assert.ok(
          answer.status >= 400 || read === 'broken' || read.includes('"error"'),
          `a clean end: ${read}`,
        );
      },
    ),
    one(
      'lets go of its provider when the client leaves',
      { streams: words, step: async (index) => (index === 2 ? 'stay' : 'on') },
      async ({ request, provider }) => {
        const leaving = new AbortController();
        const answer = await request({ stream: true }, leaving.signal);
        await answer.body?.getReader().read();
        leaving.abort();
        await lastPost(provider).closed;
      },
    ),
  ];
}

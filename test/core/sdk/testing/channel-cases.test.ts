import { defineChannel, wholeBytes, type ChannelEntry, type UpstreamRequest } from 'sluice';
import { channelCases } from 'sluice/testing';
import { map, pipe, type MonoTypeOperatorFunction } from 'rxjs';
import { expect, test } from 'vitest';

/** A channel that changes what it should pass on. */
function spoiling(
  change: (body: Record<string, unknown>) => object,
  at: { url: string; key: string },
): ChannelEntry {
  const changed = ({ body }: UpstreamRequest): string =>
    JSON.stringify(change(JSON.parse(String(body)) as Record<string, unknown>));
  return defineChannel({
    name: 'spoiling',
    models: ['test-model'],
    setup: ({ baseUrl = '' }, { http, keys: [key = ''] }) => ({
      speaks: { chat: ['chat-completions'] },
      open: (call, request) =>
        http.send(call, {
          url: baseUrl + request.path,
          headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
          body: changed(request),
        }),
    }),
  })({ baseUrl: at.url, key: at.key });
}

const live = 'holds what is asked of providers live: ';

const names = async (
  change: Parameters<typeof spoiling>[0],
  wanted: (name: string) => boolean = (name) => !name.startsWith(live),
): Promise<string[]> => {
  const cases = channelCases({
    channel: (at) => spoiling(change, at),
    lacks: ['reasoning', 'structured output'],
    errors: { 413: 418 },
  });
  const failed: string[] = [];
  for (const { name, run } of cases.filter((one) => wanted(one.name))) {
    // oxlint-disable-next-line no-await-in-loop -- each starts a gateway
    await run().catch(() => failed.push(name));
  }
  return failed;
};

test('a channel that breaks a promise fails the cases about it, and no others', async () => {
  const always = 'answers 418 when its provider answers 413';
  expect(await names((body) => body)).toEqual([always]);
  expect(await names(({ tools: _tools, ...body }) => body)).toEqual(['calls tools', always]);
  expect(
    await names(({ stream: _stream, max_tokens: _limit, ...body }) => ({ ...body, stream: false })),
  ).toEqual(['passes a stream on as it comes', 'keeps the limit of the output', always]);
  expect(
    await names((body) => ({ ...body, messages: [{ role: 'user', content: 'Something else' }] })),
  ).toEqual([
    'answers with a text, and tells what was used',
    'takes what tools have given',
    'takes images',
    always,
  ]);
});

test('and what is asked of providers live', async () => {
  const wanted = (name: string): boolean => name.startsWith(live);
  expect(await names(({ tools: _tools, ...body }) => body, wanted)).toEqual(
    ['tools', 'parallel tools', 'tools in a stream', 'a tool that must be called'].map((name) => live + name),
  );
});

test('an unknown name in "lacks" is refused, with the names that exist', () => {
  const channel = (at: { url: string; key: string }): ChannelEntry => spoiling((body) => body, at);
  expect(() => channelCases({ channel, lacks: ['images', 'thinking', 'tool'] as never })).toThrow(
    'Unknown name in "lacks": "thinking", "tool". Known names: streams, tools,',
  );
});

/** A channel that changes the bytes of whole responses. */
function rewriting(change: MonoTypeOperatorFunction<Buffer>, at: { url: string; key: string }): ChannelEntry {
  return defineChannel({
    name: 'rewriting',
    models: ['test-model'],
    setup: ({ baseUrl = '' }, { http }) => ({
      speaks: { chat: ['chat-completions'] },
      async open(call, request) {
        const headers = { 'content-type': 'application/json' };
        const answer = await http.send(call, { url: baseUrl + request.path, headers, body: request.body });
        return { ...answer, bytes: answer.bytes.pipe(change) };
      },
    }),
  })({ baseUrl: at.url, key: at.key });
}

const spread = map((bytes: Buffer) =>
  Buffer.from(JSON.stringify(JSON.parse(bytes.toString()), undefined, 2)),
);
const ofWholeReplies = /^(?:answers with a text|answers where its provider compresses|sends no length)/;

async function failing(channel: (at: { url: string; key: string }) => ChannelEntry): Promise<string[]> {
  const failed: string[] = [];
  for (const { name, run } of channelCases({ channel }).filter((one) => ofWholeReplies.test(one.name))) {
    // oxlint-disable-next-line no-await-in-loop -- each starts a gateway
    await run().catch(() => failed.push(name));
  }
  return failed;
}

test('a channel that changes whole responses keeps the promises about them', async () => {
  expect(await failing((at) => rewriting(pipe(wholeBytes(), spread), at))).toEqual([]);
});

test('a channel that takes the first piece of a response for all of it breaks them', async () => {
  // How many cases fail depends on how the response is cut, which a busy machine decides.
  expect(await failing((at) => rewriting(spread, at))).not.toEqual([]);
});

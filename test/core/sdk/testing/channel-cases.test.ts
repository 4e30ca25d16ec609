import { defineChannel, type ChannelEntry, type UpstreamRequest } from 'sluice';
import { channelCases } from 'sluice/testing';
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

import { describe, expect, it } from 'vitest';
import { overHttp, traitsByModel } from '../../channels/_kit/http/http-channel.ts';
import type { HttpRequest } from '../../core/sdk/http.ts';
import type { UpstreamRequest } from '../../core/sdk/channel.ts';
import type { ChannelOptions } from '../../core/sdk/define.ts';
import { testCall } from '../support/call.ts';

const request: UpstreamRequest = {
  operation: 'chat',
  format: 'chat-completions',
  model: 'm',
  stream: false,
  path: '/chat/completions',
  query: {},
  headers: {},
  body: '{"seed":1}',
};

async function sent(options: ChannelOptions, change: Partial<UpstreamRequest> = {}): Promise<HttpRequest> {
  const seen: HttpRequest[] = [];
  const http = {
    send: (_: unknown, made: HttpRequest) => (seen.push(made), Promise.reject(new Error('enough'))),
    close: () => Promise.resolve(),
  };
  const endpoint = {
    baseUrl: 'https://api.example.com/v1',
    headers: (key: string | undefined) => (key === undefined ? {} : { authorization: `Bearer ${key}` }),
    speaks: {},
    defaults: { 'x-version': '1' },
  };
  const keys = [options.key?.trim() ?? ''].filter((key) => key !== '');
  await overHttp(options, { http, keys } as never, endpoint)
    .open(testCall().call, { ...request, ...change })
    .catch(() => {});
  return seen[0] as HttpRequest;
}

describe('a request over HTTP', () => {
  it.each([
    [undefined, 'https://api.example.com/v1/chat/completions'],
    ['http://localhost:1/', 'http://localhost:1/chat/completions'],
    ['http://localhost:1/deep/path//', 'http://localhost:1/deep/path/chat/completions'],
    ['http://localhost:1/x?api-version=2', 'http://localhost:1/x/chat/completions?api-version=2'],
  ])('joins %s and the path', async (baseUrl, url) => {
    expect((await sent({ key: 'k', ...(baseUrl === undefined ? {} : { baseUrl }) })).url).toBe(url);
  });

  it('keeps an escaped model name and adds the query', async () => {
    const { url } = await sent(
      { key: 'k' },
      { path: '/models/a%2Fb!c=1:stream', query: { alt: 'sse', q: 'a b' } },
    );
    expect(url).toBe('https://api.example.com/v1/models/a%2Fb!c=1:stream?alt=sse&q=a+b');
  });

  it('lets the request choose a version but never a credential', async () => {
    const { headers } = await sent(
      { key: 'mine' },
      { headers: { 'x-version': '2', authorization: 'Bearer theirs' } },
    );
    expect(headers).toMatchObject({ 'x-version': '2', authorization: 'Bearer mine' });
    expect((await sent({ key: 'mine' })).headers['x-version']).toBe('1');
  });

  it('sends no credential when there is no key', async () => {
    expect((await sent({ key: ' ' })).headers).not.toHaveProperty('authorization');
  });

  it('puts later rules over earlier ones', () => {
    const traits = traitsByModel({ '*': { reasoning: 'none', outputLimit: 1 }, 'a*': { outputLimit: 2 } });
    expect(traits('abc')).toEqual({ reasoning: 'none', outputLimit: 2 });
    expect(traits('xyz')).toEqual({ reasoning: 'none', outputLimit: 1 });
  });
});

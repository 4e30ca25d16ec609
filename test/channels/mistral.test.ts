import { expect, it } from 'vitest';
import type { HttpRequest } from '../../core/sdk/http.ts';
import mistral from '../../channels/mistral.ts';
import { testCall } from '../support/call.ts';

it('uses Mistral’s words and leaves out what it refuses', async () => {
  const seen: HttpRequest[] = [];
  const http = {
    send: (_: unknown, request: HttpRequest) => (seen.push(request), Promise.reject(new Error('enough'))),
    close: () => Promise.resolve(),
  };
  const channel = mistral.spec.setup({ key: 'k' }, { http, keys: ['k'] } as never);
  const body =
    '{"model":"m","seed":7,"stream_options":{"include_usage":true},"max_completion_tokens":5,"messages":[{"role":"user","content":"seed"}]}';
  const request = {
    operation: 'chat',
    format: 'chat-completions',
    model: 'm',
    stream: true,
    path: '/chat/completions',
    query: {},
    headers: {},
    body,
  } as const;
  await channel.open(testCall().call, request).catch(() => {});
  expect(JSON.parse(String(seen[0]?.body))).toEqual({
    model: 'm',
    random_seed: 7,
    max_tokens: 5,
    messages: [{ role: 'user', content: 'seed' }],
  });
});

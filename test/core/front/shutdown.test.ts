import { expect, test } from 'vitest';
import { startGateway } from '../../support/gateway.ts';
import { startUpstream } from '../../support/upstream.ts';
import { voices } from '../../flows/_wire.ts';

test('a call that is still open when the time of a stop is over gets 503, and is told when to come back', async () => {
  const upstream = await startUpstream(() => {});
  const gateway = await startGateway({
    channels: [voices['chat-completions'].channel(upstream.url)],
    timeouts: { drain: 100 },
  });
  try {
    const answer = fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'via-chat', messages: [{ role: 'user', content: 'Hi' }] }),
    });
    await expect.poll(() => upstream.requests.length).toBe(1);
    const closed = gateway.close();
    const response = await answer;
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '1']);
    expect(await response.json()).toMatchObject({ error: { code: 'server_is_overloaded' } });
    await closed;
  } finally {
    await upstream.close();
  }
});

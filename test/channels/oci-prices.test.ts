import { afterEach, expect, test } from 'vitest';
import oci from '../../channels/oci/index.ts';
import { openLedger } from '../../core/money/ledger/open.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';

let gateway: TestGateway | undefined;
let upstream: ScriptedUpstream | undefined;
afterEach(async () => {
  await gateway?.close();
  await upstream?.close();
  gateway = upstream = undefined;
});

test('a key with a budget in dollars pays what Oracle charges, and gets 403 for a model without a price', async () => {
  upstream = await startUpstream((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(
      JSON.stringify({
        id: 'c1',
        object: 'chat.completion',
        created: 1,
        model: 'xai.grok-4',
        choices: [{ index: 0, message: { role: 'assistant', content: 'Hi.' }, finish_reason: 'stop' }],
        usage: { prompt_tokens: 1000, completion_tokens: 200, total_tokens: 1200 },
      }),
    );
  });
  gateway = await startGateway({
    channels: [
      oci({ baseUrl: `${upstream.url}/openai/v1`, key: 'k', models: ['xai.grok-4', 'xai.grok-new'] }),
    ],
  });
  const budget = { unit: 'micro-dollar', period: 'total', amount: 1e6 } as const;
  const { value, record } = await gateway.apiKeys.create({ name: 'oracle', budgets: [budget] });
  const { url, stores } = gateway;
  const sendChat = (model: string): Promise<Response> =>
    fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${value}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hi' }], max_tokens: 300 }),
    });
  expect((await sendChat('xai.grok-new')).status).toBe(403);
  const answer = await sendChat('xai.grok-4');
  expect(answer.status).toBe(200);
  await answer.text();
  // 1,000 tokens at 3 dollars a million, and 200 at 15.
  await expect
    .poll(async () => (await openLedger(stores).states(record.id, [budget]))[0])
    .toMatchObject({ spent: 6000 });
});

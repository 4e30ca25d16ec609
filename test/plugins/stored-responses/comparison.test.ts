import { afterAll, beforeAll, expect, test } from 'vitest';
import { call, startNative, runTurn, type NativeProvider } from '../../flows/_turns.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';

let native: NativeProvider;
let gateway: TestGateway;

beforeAll(async () => {
  native = await startNative();
  gateway = await startGateway({ channels: [native.channel] });
});
afterAll(async () => {
  await gateway.close();
  await native.close();
});

test('a cache is compared with a response of the same key, and with no other', async () => {
  const { value } = await gateway.apiKeys.create({ name: 'another' });
  const { id } = await runTurn(gateway, { model: 'native-1', input: 'Hello' });
  const compare = (key: string, response: unknown) =>
    call({ url: gateway.url, key }, 'POST', '/v1/responses', {
      model: 'native-1',
      input: 'Hello',
      prompt_cache_options: { comparison_response_id: response },
    });
  const requestsBefore = native.requests.length;
  for (const [key, response] of [
    [value, id],
    [gateway.key, 'resp_unknown'],
  ] as const)
    expect(await compare(key, response)).toMatchObject({
      status: 404,
      body: { error: { param: 'prompt_cache_options.comparison_response_id' } },
    });
  expect(native.requests.length).toBe(requestsBefore);
  expect((await compare(gateway.key, id)).status).toBe(200);
  expect(native.bodies().at(-1)).toMatchObject({ prompt_cache_options: { comparison_response_id: id } });
  expect((await compare(value, null)).status).toBe(200);
});

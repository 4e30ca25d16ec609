import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import demo from '../../channels/demo/index.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';

type Json = Record<string, unknown>;

const claude = 'us.anthropic.claude-sonnet-4-5-20250929-v1:0';
const nova = 'apac.amazon.nova-lite-v1:0';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({
    channels: [demo({ models: ['demo', 'us.demo', 'meta.llama-3.1', claude, nova] })],
  });
});
afterAll(() => gateway.close());

/** Sends a request as the AWS SDKs do with a bearer token. */
async function send(
  path: string,
  { key = gateway.key, body }: { key?: string; body?: Json } = {},
): Promise<Response> {
  return fetch(gateway.url + path, {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'amz-sdk-invocation-id': '0d3b2a1e-6f0c-4b7e-9d64-1a2b3c4d5e6f',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

async function profiles(query = '', key = gateway.key): Promise<readonly Json[]> {
  const answer = await send(`/inference-profiles${query}`, { key });
  expect(answer.status).toBe(200);
  return ((await answer.json()) as { inferenceProfileSummaries: readonly Json[] }).inferenceProfileSummaries;
}
const idsOf = (list: readonly Json[]): unknown[] =>
  list.map(({ inferenceProfileId }) => inferenceProfileId).toSorted();

// Claude Code asks for them when it starts, and picks its models from those whose ids have "anthropic".
describe('the inference profiles of the control plane', () => {
  test('are the models whose names are those of profiles, with every member that clients require', async () => {
    const list = await profiles('?type=SYSTEM_DEFINED');
    expect(idsOf(list)).toEqual([nova, claude]);
    // The patterns are those of the service's model in botocore (bedrock/2023-04-20/service-2.json).
    expect(list.find(({ inferenceProfileId }) => inferenceProfileId === claude)).toEqual({
      inferenceProfileId: claude,
      inferenceProfileName: expect.stringMatching(/^([0-9a-zA-Z][ _-]?)+$/) as string,
      inferenceProfileArn: expect.stringMatching(
        /^arn:aws(|-us-gov|-cn|-iso|-iso-b):bedrock:(|[0-9a-z-]{0,20}):(|[0-9]{12}):inference-profile\/us\.anthropic\.[a-zA-Z0-9-:.]+$/,
      ) as string,
      models: [{ modelArn: expect.stringMatching(/:foundation-model\/us\.anthropic\.claude-/) as string }],
      status: 'ACTIVE',
      type: 'SYSTEM_DEFINED',
    });
  });

  test('are filtered by their type', async () => {
    expect(idsOf(await profiles())).toEqual([nova, claude]);
    expect(await profiles('?type=APPLICATION')).toEqual([]);
    const wrong = await send('/inference-profiles?type=MINE');
    expect([wrong.status, wrong.headers.get('x-amzn-errortype')]).toEqual([400, 'ValidationException']);
  });

  test('are those that the key may use', async () => {
    const { value } = await gateway.apiKeys.create({ name: 'one model', models: [nova] });
    expect(idsOf(await profiles('', value))).toEqual([nova]);
    const other = await send(`/inference-profiles/${encodeURIComponent(claude)}`, { key: value });
    expect([other.status, other.headers.get('x-amzn-errortype')]).toEqual([404, 'ResourceNotFoundException']);
  });

  test('are given by id and by address, and their addresses are called', async () => {
    const [profile = {}] = await profiles();
    const { inferenceProfileId: id, inferenceProfileArn: address, models } = profile;
    const [{ modelArn } = {}] = models as readonly Json[];
    const provider = `arn:aws:bedrock:us-east-1:123456789012:inference-profile/${String(id)}`;
    for (const name of [id, address, provider]) {
      // oxlint-disable-next-line no-await-in-loop
      const answer = await send(`/inference-profiles/${encodeURIComponent(String(name))}`);
      // oxlint-disable-next-line no-await-in-loop
      expect(await answer.json()).toEqual(profile);
    }
    const body = { messages: [{ role: 'user', content: [{ text: 'Hello' }] }] };
    for (const name of [id, address, modelArn]) {
      // oxlint-disable-next-line no-await-in-loop
      const answer = await send(`/model/${encodeURIComponent(String(name))}/converse`, { body });
      expect(answer.status).toBe(200);
    }
  });
});

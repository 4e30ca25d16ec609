import { ConverseCommand, ConverseStreamCommand } from '@aws-sdk/client-bedrock-runtime';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import demo from '../../channels/demo/index.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { bedrock } from './converse-client.ts';

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway({ channels: [demo({ speaks: ['messages'] })] });
});

afterAll(() => gateway.close());

const request = (text: string) => ({
  modelId: 'demo',
  messages: [{ role: 'user' as const, content: [{ text }] }],
});

describe('the AWS SDK is told of errors by the names that it knows', () => {
  test.each(['bearer', 'signed'] as const)('a wrong key, shown as %s', async (how) => {
    const client = bedrock({ url: gateway.url, key: 'sk-wrong' }, how);
    await expect(client.send(new ConverseCommand(request('Hi')))).rejects.toMatchObject({
      name: 'UnrecognizedClientException',
      $metadata: { httpStatusCode: 401 },
    });
  });

  test('a model that nobody serves', async () => {
    const failed = bedrock(gateway).send(
      new ConverseCommand({ ...request('Hi'), modelId: 'nobody.knows-v1:0' }),
    );
    await expect(failed).rejects.toMatchObject({ name: 'ServiceUnavailableException' });
  });

  test('a request that makes no sense, by the place of what is wrong', async () => {
    const failed = bedrock(gateway).send(
      new ConverseCommand({ ...request('Hi'), inferenceConfig: { temperature: 7 } }),
    );
    await expect(failed).rejects.toMatchObject({
      name: 'ValidationException',
      message: 'inferenceConfig.temperature must be between 0 and 1.',
    });
  });

  test('a guardrail that no channel of another format could keep', async () => {
    const guardrailConfig = { guardrailIdentifier: 'gr-1', guardrailVersion: '1' };
    const failed = bedrock(gateway).send(new ConverseCommand({ ...request('Hi'), guardrailConfig }));
    await expect(failed).rejects.toMatchObject({
      name: 'ValidationException',
      message: expect.stringContaining('guardrailConfig needs a channel of the converse format') as string,
    });
  });

  test('a provider that is limited', async () => {
    const failed = bedrock(gateway).send(new ConverseCommand(request('!status=429 Hi')));
    await expect(failed).rejects.toMatchObject({ name: 'ThrottlingException' });
  });

  test.each([
    ['tells of a failure', '!error-after=5', 'ServiceUnavailableException'],
    ['breaks off', '!cut-after=5', 'ModelStreamErrorException'],
  ])('a stream that %s in its middle', async (_what, magic, name) => {
    const { stream } = await bedrock(gateway).send(
      new ConverseStreamCommand(request(`${magic} one two three four`)),
    );
    let text = '';
    const read = async (): Promise<void> => {
      for await (const event of stream ?? []) text += event.contentBlockDelta?.delta?.text ?? '';
    };
    await expect(read()).rejects.toMatchObject({ name });
    expect(text).not.toBe('');
  });

  test('a path that there is not', async () => {
    const response = await fetch(`${gateway.url}/model/demo/dance`, { method: 'POST' });
    expect(response.status).toBe(404);
    expect(response.headers.get('x-amzn-errortype')).toBe('ResourceNotFoundException');
  });
});

import { afterEach, expect, test } from 'vitest';
import sagemaker from '../../channels/sagemaker/index.ts';
import { openai } from '../clients/sdks.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import type { ScriptedUpstream } from '../support/upstream.ts';
import { modelStreamError, payloadPart, payloadParts, startSageMaker, type Account } from './_sagemaker.ts';

let gateway: TestGateway | undefined;
let upstream: ScriptedUpstream | undefined;

const stop = async (): Promise<void> => {
  await gateway?.close();
  await upstream?.close();
  gateway = upstream = undefined;
};
afterEach(stop);

const account: Account = {
  accessKeyId: 'AKIDEXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI-secret-of-the-account',
  region: 'eu-west-1',
  endpoints: { llama: [], shared: ['qwen'] },
};

type Container = Parameters<typeof startSageMaker>[1];

interface Started {
  readonly client: ReturnType<typeof openai>;
  readonly requests: ScriptedUpstream['requests'];
  readonly gateway: TestGateway;
}

async function start(container: Container, options: Parameters<typeof sagemaker>[0] = {}): Promise<Started> {
  upstream = await startSageMaker(account, container);
  gateway = await startGateway({
    channels: [
      sagemaker({
        region: account.region,
        key: `${account.accessKeyId}|${account.secretAccessKey}`,
        baseUrl: upstream.url,
        models: ['llama', 'shared/qwen', 'shared', 'llama/qwen', 'gone'],
        ...options,
      }),
    ],
  });
  return { client: openai(gateway), requests: upstream.requests, gateway };
}

const json =
  (body: object, status = 200): Container =>
  (_request, response) => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  };

const streams =
  (...parts: readonly Buffer[]): Container =>
  (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/vnd.amazon.eventstream' });
    for (const one of parts) response.write(one);
    response.end();
  };

const completion = {
  id: 'c1',
  object: 'chat.completion',
  created: 1,
  model: '/opt/ml/model',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hi.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
};
const prompt = { messages: [{ role: 'user' as const, content: 'Hi' }] };

const chunk = (delta: object, finish: string | null = null): object => ({
  id: 'c1',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta, finish_reason: finish }],
});
const events = (...chunks: readonly object[]): Buffer =>
  Buffer.from(
    [...chunks.map((one) => JSON.stringify(one)), '[DONE]'].map((data) => `data: ${data}\n\n`).join(''),
  );
const jsonLines = (...chunks: readonly object[]): Buffer =>
  Buffer.from(`${chunks.map((one) => JSON.stringify(one)).join('\n')}\n\n`);

const greeting = [chunk({ role: 'assistant', content: 'Grüße ' }), chunk({ content: '👋 {"a":1}' })];

async function textOf(client: Started['client']): Promise<readonly [text: string, reason: string | null]> {
  const stream = await client.chat.completions.create({ ...prompt, model: 'llama', stream: true });
  let [text, reason]: [string, string | null] = ['', null];
  for await (const { choices } of stream) {
    text += choices[0]?.delta.content ?? '';
    reason = choices[0]?.finish_reason ?? reason;
  }
  return [text, reason];
}

test('an endpoint is asked by its name with a signed request, in the words of its container', async () => {
  const { client, requests } = await start(json(completion));
  const reply = await client.chat.completions.create({ ...prompt, model: 'llama', max_completion_tokens: 9 });
  expect(reply.choices[0]?.message.content).toBe('Hi.');
  const [request] = requests;
  expect(request?.url).toBe('/endpoints/llama/invocations');
  expect(request?.headers).not.toHaveProperty('x-amzn-sagemaker-inference-component');
  expect(JSON.parse(request?.body.toString() ?? '')).toEqual({ ...prompt, max_tokens: 9 });
});

test('an inference component stands in a signed header, and the name of its model in the body', async () => {
  const { client, requests } = await start(json(completion), { servedModel: 'qwen3' });
  await client.chat.completions.create({ ...prompt, model: 'shared/qwen' });
  expect(requests[0]?.url).toBe('/endpoints/shared/invocations');
  expect(requests[0]?.headers).toMatchObject({ 'x-amzn-sagemaker-inference-component': 'qwen' });
  expect(JSON.parse(requests[0]?.body.toString() ?? '')).toMatchObject({ model: 'qwen3' });
});

test.each([
  ['gone', /Endpoint gone of account/],
  ['shared', /Inference Component Name header is required/],
  ['llama/qwen', /Inference Component Name header is not allowed/],
])('SageMaker says what is wrong with the endpoint %s, and the client reads it', async (model, sentence) => {
  const { client } = await start(json(completion));
  await expect(client.chat.completions.create({ ...prompt, model })).rejects.toMatchObject({
    status: 400,
    message: expect.stringMatching(sentence) as string,
  });
});

test('a wrong secret is the fault of the channel, and stands nowhere', async () => {
  const secret = 'not-the-secret-of-this-account';
  const started = await start(json(completion), { key: `${account.accessKeyId}|${secret}` });
  const refused = started.client.chat.completions.create({ ...prompt, model: 'llama' });
  await expect(refused).rejects.toMatchObject({ status: 502 });
  expect(JSON.stringify(started.gateway.lines)).not.toContain(secret);
});

test.each([
  ['server-sent events', events(...greeting, chunk({}, 'stop')), 'stop'],
  // DJL LMI, djl_python/async_utils.py and lmi_vllm/request_response_utils.py: lines of JSON, without a last word.
  ['lines of JSON', jsonLines(...greeting, chunk({}, 'length')), 'length'],
])(
  'a stream of %s arrives whole, also where its parts end inside an event or a character',
  async (_name, bytes, reason) => {
    const { client, requests, gateway: started } = await start(streams(...payloadParts(bytes, 7)));
    expect(await textOf(client)).toEqual(['Grüße 👋 {"a":1}', reason]);
    expect(requests[0]?.url).toBe('/endpoints/llama/invocations-response-stream');
    expect(JSON.parse(requests[0]?.body.toString() ?? '')).toMatchObject({ stream: true });
    const answer = await fetch(`${started.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${started.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ ...prompt, model: 'llama', stream: true }),
    });
    expect(answer.headers.get('content-type')).toContain('text/event-stream');
    expect(await answer.text()).toMatch(/data: \[DONE\]\n\n$/);
  },
);

test('reasons of DJL LMI are those of chat completions', async () => {
  const ended = [{ ...completion.choices[0], finish_reason: 'eos_token' }];
  const { client } = await start(json({ ...completion, choices: ended }));
  const reply = await client.chat.completions.create({ ...prompt, model: 'llama' });
  expect(reply.choices[0]?.finish_reason).toBe('stop');
});

const begun = payloadPart(events(chunk({ role: 'assistant', content: 'Hi' })).subarray(0, -14));
const lineBegun = payloadPart(jsonLines(chunk({ role: 'assistant', content: 'Hi' })));
test.each([
  ['a failure', [begun, modelStreamError('The connection was reset.', 'StreamBroken')]],
  ['a message that breaks off', [begun, begun.subarray(0, 20)]],
  ['an end before that of the reply', [begun]],
  ['lines of JSON that end before the reply', [lineBegun]],
])('%s inside a stream is an error', async (_name, parts) => {
  const { client } = await start(streams(...parts));
  await expect(textOf(client)).rejects.toThrow(/reset|closed the connection/);
});

const refused = {
  ErrorCode: 'CLIENT_ERROR_FROM_MODEL',
  Message: 'Received client error (400) from primary with message "…".',
  OriginalStatusCode: 400,
  OriginalMessage: JSON.stringify({ error: { message: 'max_tokens is too large', type: 'BadRequestError' } }),
};

test('the refusal of a container reaches the client with its status and sentence', async () => {
  const { client } = await start(json(refused, 424));
  await expect(client.chat.completions.create({ ...prompt, model: 'llama' })).rejects.toMatchObject({
    status: 400,
    message: expect.stringContaining('max_tokens is too large') as string,
  });
});

test('the failure of a container is the failure of the provider', async () => {
  const { client } = await start(
    json({ ...refused, OriginalStatusCode: 500, OriginalMessage: 'CUDA out of memory' }, 424),
  );
  await expect(client.chat.completions.create({ ...prompt, model: 'llama' })).rejects.toMatchObject({
    status: 502,
  });
});

test('a key that is no access key is refused at the start, with what one looks like', async () => {
  await expect(start(json({}), { key: 'api-key' })).rejects.toThrow(/ACCESS\|SECRET/);
});

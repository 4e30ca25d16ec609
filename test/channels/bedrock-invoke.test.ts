import {
  InvokeModelCommand,
  InvokeModelWithResponseStreamCommand,
  type BedrockRuntimeClient,
} from '@aws-sdk/client-bedrock-runtime';
import { afterEach, describe, expect, test } from 'vitest';
import anthropic from '../../channels/anthropic.ts';
import bedrockChannel from '../../channels/bedrock/index.ts';
import demo from '../../channels/demo/index.ts';
import { writeEventStream } from '../../core/formats/_shared/event-stream.ts';
import type { JsonObject } from '../../core/model/json.ts';
import type { ChannelEntry } from '../../core/sdk/define.ts';
import { bedrock } from '../clients/converse-client.ts';
import { voices } from '../flows/_wire.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';

const claude = 'us.anthropic.claude-sonnet-4-5-20250929-v1:0';

let gateway: TestGateway | undefined;
let upstream: ScriptedUpstream | undefined;
let client: BedrockRuntimeClient | undefined;

afterEach(async () => {
  client?.destroy();
  await gateway?.close();
  await upstream?.close();
  client = gateway = upstream = undefined;
});

async function start(
  script: Parameters<typeof startUpstream>[0],
  channel: (url: string) => ChannelEntry,
): Promise<{ readonly client: BedrockRuntimeClient; readonly requests: ScriptedUpstream['requests'] }> {
  upstream = await startUpstream(script);
  gateway = await startGateway({ channels: [channel(upstream.url)] });
  client = bedrock(gateway);
  return { client, requests: upstream.requests };
}

const onBedrock = (url: string): ChannelEntry =>
  bedrockChannel({ region: 'us-east-1', key: 'k', baseUrl: url });

const body = (more: JsonObject = {}): string =>
  JSON.stringify({
    anthropic_version: 'bedrock-2023-05-31',
    max_tokens: 50,
    messages: [{ role: 'user', content: 'Hello' }],
    ...more,
  });

async function collectChunks(
  events:
    | AsyncIterable<{ readonly chunk?: { readonly bytes?: Uint8Array | undefined } | undefined }>
    | undefined,
): Promise<readonly JsonObject[]> {
  const chunks: JsonObject[] = [];
  for await (const { chunk } of events ?? [])
    if (chunk?.bytes !== undefined)
      chunks.push(JSON.parse(Buffer.from(chunk.bytes).toString()) as JsonObject);
  return chunks;
}

const textOf = (chunks: readonly JsonObject[]): string =>
  chunks.map(({ delta }) => String((delta as JsonObject | undefined)?.['text'] ?? '')).join('');

const chunk = (json: JsonObject): Buffer =>
  writeEventStream({ event: 'chunk', json: { bytes: Buffer.from(JSON.stringify(json)).toString('base64') } });
const frames: readonly JsonObject[] = [
  {
    type: 'message_start',
    message: {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      content: [],
      model: 'claude',
      usage: { input_tokens: 4, output_tokens: 1 },
    },
  },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Good day.' } },
  { type: 'content_block_stop', index: 0 },
  {
    type: 'message_delta',
    delta: { stop_reason: 'end_turn', stop_sequence: null },
    usage: { output_tokens: 3 },
  },
  { type: 'message_stop' },
];

describe('InvokeModel for clients', () => {
  test('passes to Bedrock as it was written, beta flags and all, and its answer comes back as it was', async () => {
    const answer = { ...voices.messages.whole('Good day.'), 'amazon-bedrock-guardrailAction': 'NONE' };
    const scene = await start((_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
    }, onBedrock);
    const written = body({ anthropic_beta: ['context-1m-2025-08-07'], top_k: 5 });
    const reply = await scene.client.send(new InvokeModelCommand({ modelId: claude, body: written }));
    expect(JSON.parse(Buffer.from(reply.body).toString())).toEqual(answer);
    const [seen] = scene.requests;
    expect(seen?.url).toBe(`/model/${encodeURIComponent(claude)}/invoke`);
    expect(String(seen?.body)).toBe(written);
  });

  test('streams from Bedrock in its chunks, and what was used is known', async () => {
    const scene = await start((_request, response) => {
      response.writeHead(200, { 'content-type': 'application/vnd.amazon.eventstream' });
      for (const frame of frames) response.write(chunk(frame));
      response.end();
    }, onBedrock);
    const reply = await scene.client.send(
      new InvokeModelWithResponseStreamCommand({ modelId: claude, body: body() }),
    );
    expect(await collectChunks(reply.body)).toEqual(frames);
    expect(scene.requests[0]?.url).toMatch(/\/invoke-with-response-stream$/);
    await expect
      .poll(() => gateway?.lines)
      .toContainEqual(expect.objectContaining({ usage: expect.objectContaining({ input: 4, output: 3 }) }));
  });

  test('reaches a channel of the maker’s own, whose requests name the model and no version', async () => {
    const scene = await start(
      (_request, response) => {
        response
          .writeHead(200, { 'content-type': 'application/json' })
          .end(JSON.stringify(voices.messages.whole('Good day.')));
      },
      (url) => anthropic({ key: 'k', baseUrl: `${url}/v1`, models: { [claude]: 'claude-sonnet-4-5' } }),
    );
    const reply = await scene.client.send(
      new InvokeModelCommand({ modelId: claude, body: body({ anthropic_beta: ['x-1'] }) }),
    );
    expect(JSON.parse(Buffer.from(reply.body).toString())).toMatchObject({
      content: [{ type: 'text', text: 'Good day.' }],
    });
    const sent = JSON.parse(String(scene.requests[0]?.body)) as JsonObject;
    expect(sent).toMatchObject({ model: 'claude-sonnet-4-5', max_tokens: 50 });
    expect(sent).not.toHaveProperty('anthropic_version');
    expect(sent).not.toHaveProperty('anthropic_beta');
  });

  test('reaches channels of other formats, whole and streamed, with tools', async () => {
    const scene = await start(
      () => {},
      () => demo({ speaks: ['chat-completions'] }),
    );
    const whole = await scene.client.send(new InvokeModelCommand({ modelId: 'demo', body: body() }));
    expect(JSON.parse(Buffer.from(whole.body).toString())).toMatchObject({
      type: 'message',
      content: [{ type: 'text', text: 'You said: Hello' }],
    });
    const streamed = await scene.client.send(
      new InvokeModelWithResponseStreamCommand({
        modelId: 'demo',
        body: body({
          messages: [{ role: 'user', content: 'call look' }],
          tools: [{ name: 'look', input_schema: { type: 'object', properties: {} } }],
        }),
      }),
    );
    const chunks = await collectChunks(streamed.body);
    expect(chunks.at(0)).toMatchObject({ type: 'message_start' });
    expect(chunks).toContainEqual(
      expect.objectContaining({ content_block: expect.objectContaining({ name: 'look' }) }),
    );
    expect(chunks.at(-1)).toMatchObject({ type: 'message_stop' });
  });

  test('failures are the exceptions that the SDK knows, before a stream and in it', async () => {
    const scene = await start(
      () => {},
      () => demo({ speaks: ['chat-completions'] }),
    );
    const invoke = (text: string): Promise<unknown> =>
      scene.client
        .send(
          new InvokeModelWithResponseStreamCommand({
            modelId: 'demo',
            body: body({ messages: [{ role: 'user', content: text }] }),
          }),
        )
        .then(({ body: events }) => collectChunks(events))
        .catch((error: unknown) => error);
    expect(await invoke('!status=429')).toMatchObject({ name: 'ThrottlingException' });
    expect(await invoke('one two three four !error-after=2')).toMatchObject({
      name: expect.stringMatching(/Exception$/),
    });
  });

  // Bodies of https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters.html, a maker each.
  test.each([
    ['Titan', { inputText: 'hi', textGenerationConfig: { maxTokenCount: 9 } }],
    ['Nova', { schemaVersion: 'messages-v1', messages: [{ role: 'user', content: [{ text: 'hi' }] }] }],
    ['Llama', { prompt: 'hi', max_gen_len: 9 }],
    ['Mistral', { prompt: '<s>[INST] hi [/INST]', max_tokens: 9 }],
    ['Claude before messages', { prompt: '\n\nHuman: hi\n\nAssistant:', max_tokens_to_sample: 9 }],
    [
      'OpenAI',
      {
        messages: [
          { role: 'system', content: 'a' },
          { role: 'user', content: 'hi' },
        ],
        max_completion_tokens: 9,
      },
    ],
    ['embeddings of Cohere', { texts: ['hi'], input_type: 'search_query' }],
    ['images of Titan', { taskType: 'TEXT_IMAGE', textToImageParams: { text: 'a cat' } }],
  ])(
    'a body of %s is refused with one sentence that says what to do, whole and as a stream',
    async (_, other) => {
      const scene = await start(
        () => {},
        () => demo({ speaks: ['chat-completions'] }),
      );
      const input = { modelId: 'demo', body: JSON.stringify(other) };
      for (const command of [
        new InvokeModelCommand(input),
        new InvokeModelWithResponseStreamCommand(input),
      ]) {
        // oxlint-disable-next-line no-await-in-loop -- one after the other
        const error: unknown = await scene.client
          .send(command as InvokeModelCommand)
          .catch((thrown: unknown) => thrown);
        expect(error).toMatchObject({
          name: 'ValidationException',
          message: expect.stringMatching(
            /^InvokeModel takes the messages format alone here, .* go through Converse, /,
          ) as string,
        });
      }
    },
  );

  test('a stream that somebody reads is decoded and told again', async () => {
    const scene = await start(
      (_request, response) => {
        response.writeHead(200, { 'content-type': 'application/vnd.amazon.eventstream' });
        for (const frame of frames) response.write(chunk(frame));
        response.end();
      },
      (url) => bedrockChannel({ region: 'us-east-1', key: 'k', baseUrl: url, systemPrompt: 'Be brief.' }),
    );
    const reply = await scene.client.send(
      new InvokeModelWithResponseStreamCommand({ modelId: claude, body: body() }),
    );
    expect(textOf(await collectChunks(reply.body))).toBe('Good day.');
    const sent = JSON.parse(String(scene.requests[0]?.body)) as JsonObject;
    expect(sent['anthropic_version']).toBe('bedrock-2023-05-31');
    expect(sent).not.toHaveProperty('model');
    expect(sent).not.toHaveProperty('stream');
  });
});

describe('the models of a region', () => {
  const applicationProfile = 'arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/ab12';

  test.each([
    ['with an API key', 'k', /^Bearer k$/],
    ['with credentials', 'AKID|secret', /^AWS4-HMAC-SHA256 Credential=AKID\/\d+\/eu-west-1\/bedrock\//],
  ])('are those that can be asked on demand, and its profiles, asked for %s', async (_how, key, proof) => {
    upstream = await startUpstream((request, response) => {
      const { pathname, searchParams } = new URL(request.url, 'http://here');
      const onDemand = { inferenceTypesSupported: ['ON_DEMAND'], modelLifecycle: { status: 'ACTIVE' } };
      const profile = (id: string, status = 'ACTIVE'): JsonObject => ({ inferenceProfileId: id, status });
      const own = { inferenceProfileArn: applicationProfile, type: 'APPLICATION', ...profile('ab12') };
      const pages: Readonly<Record<string, JsonObject>> = {
        '/foundation-models': {
          modelSummaries: [
            { modelId: 'amazon.nova-lite-v1:0', ...onDemand },
            { modelId: 'amazon.old-v1', ...onDemand, modelLifecycle: { status: 'LEGACY' } },
            { modelId: 'meta.only-provisioned', inferenceTypesSupported: ['PROVISIONED'] },
          ],
        },
        '/inference-profiles of the account': { inferenceProfileSummaries: [own] },
        '/inference-profiles': { inferenceProfileSummaries: [profile('eu.first')], nextToken: 'next' },
        '/inference-profiles next': {
          inferenceProfileSummaries: [profile('eu.second'), profile('eu.off', 'OFF')],
        },
      };
      // Those of the account are not among what is told unasked.
      const whose =
        searchParams.get('type') === 'APPLICATION' ? 'of the account' : searchParams.get('nextToken');
      const page = pages[whose === null ? pathname : `${pathname} ${whose}`];
      response
        .writeHead(page === undefined ? 404 : 200, { 'content-type': 'application/json' })
        .end(JSON.stringify(page ?? {}));
    });
    const { url, requests } = upstream;
    gateway = await startGateway({
      channels: [bedrockChannel({ region: 'eu-west-1', key, baseUrl: url, models: 'discover' })],
    });
    const { url: here, key: own } = gateway;
    await expect
      .poll(async () => {
        const list = await fetch(`${here}/v1/models`, { headers: { authorization: `Bearer ${own}` } });
        return ((await list.json()) as { data: { id: string }[] }).data.map(({ id }) => id).toSorted();
      })
      .toEqual(['amazon.nova-lite-v1:0', applicationProfile, 'eu.first', 'eu.second']);
    for (const { headers } of requests) expect(headers['authorization']).toMatch(proof);
  });

  test('the control plane stands beside the runtime', async () => {
    const { controlPlane } = await import('../../channels/bedrock/list.ts');
    expect(controlPlane('https://bedrock-runtime.us-east-1.amazonaws.com')).toBe(
      'https://bedrock.us-east-1.amazonaws.com',
    );
    expect(controlPlane('https://vpce-1.bedrock-runtime.us-east-1.vpce.amazonaws.com')).toBe(
      'https://vpce-1.bedrock.us-east-1.vpce.amazonaws.com',
    );
    expect(controlPlane('http://127.0.0.1:80/aws')).toBe('http://127.0.0.1:80/aws');
  });
});

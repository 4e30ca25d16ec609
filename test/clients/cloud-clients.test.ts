import { formatVoice, type ChannelUnderTest } from 'sluice/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { respondWith, scriptFor } from '../../core/sdk/testing/accepting-provider.ts';
import { listed } from '../../core/sdk/testing/channel-cases/provider-actions.ts';
import { ownKinds } from '../channels/_kinds.ts';
import { testedPresets } from '../channels/_presets.ts';
import { startTokenServer } from '../channels/_tokens.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { selectRotating } from '../support/tries.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { chatClient } from './chat-client.ts';
import type { Client, ToolSpec } from './conversation.ts';
import { bedrock, converseClient } from './converse-client.ts';
import { generateContentClient } from './generate-content-client.ts';
import { messagesClient } from './messages-client.ts';
import { responsesClient } from './responses-client.ts';
import { anthropicVertex, azureOpenai, vertexGenai, type Access } from './sdks.ts';

/** Clients of clouds, for which the gateway stands in the place of the cloud. */
const clients: Readonly<Record<string, (gateway: Access) => Client>> = {
  azure: (gateway) => chatClient(azureOpenai(gateway)),
  'azure responses': (gateway) => responsesClient(azureOpenai(gateway), 'items'),
  'genai vertex': (gateway) => generateContentClient(vertexGenai(gateway, 'project'), 'level'),
  'genai vertex with a token': (gateway) => generateContentClient(vertexGenai(gateway, 'token'), 'level'),
  'genai express': (gateway) => generateContentClient(vertexGenai(gateway, 'express'), 'budget'),
  'anthropic vertex': (gateway) => messagesClient(anthropicVertex(gateway), 'adaptive'),
  bedrock: (gateway) => converseClient(bedrock(gateway, 'signed')),
};

/** Name for models whose own name a client refuses. */
const otherName = 'a-name-of-the-operator';

/**
 * Returns the name by which a client asks for a model. `@google/genai` for Vertex AI refuses two dots in a name, takes what stands before a
 * slash as the publisher, and drops what follows a second slash unless the name begins with a publisher.
 */
function nameFor(client: string, model: string): string {
  if (!client.startsWith('genai')) return model;
  if (model.includes('..')) return otherName;
  return model.split('/').length > 2 ? `publishers/google/models/${model}` : model;
}

const weather: ToolSpec = {
  name: 'weather',
  description: 'The weather in one city, now',
  schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  result: 'Hail, 4 degrees',
};

const tokens = await startTokenServer();
afterAll(() => tokens.close());

const kinds: readonly (readonly [name: string, tested: ChannelUnderTest])[] = [
  ...Object.entries(ownKinds(tokens.url)),
  ...testedPresets.map((tested) => [`${tested.name} with ${tested.model}`, tested] as const),
];

/** The formats that providers serve at paths of their own, beside the one in which the channel asks first. */
const formatPaths = [
  [/\/responses$/, 'responses'],
  [/\/messages$/, 'messages'],
  [/\/converse(?:-stream)?$/, 'converse'],
] as const;

/** Starts the provider of a channel, which answers each request in the format of its path. */
async function startProvider(tested: ChannelUnderTest): Promise<ScriptedUpstream> {
  const own = tested.voice ?? (await formatVoice(tested.format ?? 'chat-completions'));
  const others = await Promise.all(
    formatPaths.map(async ([path, format]) => [path, await formatVoice(format)] as const),
  );
  return startUpstream((request, response) => {
    if (listed(tested, request, response)) return;
    const { pathname } = new URL(request.url, 'http://provider');
    const [, voice = own] = others.find(([path]) => path.test(pathname)) ?? [];
    respondWith(voice, request, response, scriptFor);
  });
}

let pairs = 0;
afterAll(() => {
  process.stdout.write(
    `${pairs} pairs of ${Object.keys(clients).length} clients and ${kinds.length} channels\n`,
  );
});

const inOrder = kinds.map(([kind, tested], index) => ({ kind, tested, index }));
describe.each(inOrder)('$kind', ({ tested, index }) => {
  const { model: ownName = 'test-model' } = tested;
  let provider: ScriptedUpstream;
  let gateway: TestGateway;

  beforeAll(async () => {
    provider = await startProvider(tested);
    const { kind, spec, options } = tested.channel({ url: provider.url, key: 'channel-key' });
    gateway = await startGateway({
      channels: [
        { kind, spec, options: { ...options, models: { [ownName]: ownName, [otherName]: ownName } } },
      ],
      routing: { attempts: 1 },
    });
  });
  afterAll(async () => {
    await gateway.close();
    await provider.close();
  });

  // Each channel is tried with a third of the clients, the next one with others.
  test.each(selectRotating(Object.entries(clients), index, 3))(
    '%s gets text, streams and tool calls',
    async (name, make) => {
      const client = make(gateway);
      const model = nameFor(name, ownName);
      const text = 'Say the word "apple" and nothing else.';
      const counting = 'Count from one to ten in words.';
      expect(await client.whole({ model, text })).toMatchObject({ text: 'Apple.', stop: client.words.done });
      const streamed = await client.stream({ model, text: counting });
      expect(streamed).toMatchObject({
        text: 'one two three four five six seven eight nine ten',
        stop: client.words.done,
      });
      expect(streamed.pieces).toBeGreaterThan(1);
      for (const stream of [false, true]) {
        // oxlint-disable-next-line no-await-in-loop
        const loop = await client.loop(
          { model, text: 'What is the weather in Oslo?' },
          { tools: [weather], stream },
        );
        expect(loop.calls).toEqual([expect.objectContaining({ name: 'weather', input: { city: 'Oslo' } })]);
        expect(loop.stop).toBe(client.words.tools);
        expect(loop.final).toMatchObject({ text: 'There is hail in Oslo.', stop: client.words.done });
      }
      pairs += 1;
    },
  );
});

/* oxlint-disable vitest/expect-expect, vitest/valid-title -- the cases name themselves, and throw what is wrong. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { channelCases, formatVoice, type SeenRequest, type Voice } from 'sluice/testing';
import { describe, expect, test } from 'vitest';
import { inTurn } from '../support/tries.ts';
import { presetKind, presets } from './_presets.ts';
import { mistralVoice } from './_voices.ts';

const chat = await formatVoice('chat-completions');
const messages = await formatVoice('messages');
/** Vertex AI has the model in the address. */
const named = ({ body, ...request }: SeenRequest): SeenRequest => ({
  ...request,
  body: Buffer.from(JSON.stringify({ model: 'm', ...(JSON.parse(body.toString()) as object) })),
});
const claudeOnVertex: Voice = {
  ...messages,
  hear: (request) => messages.hear(named(request)),
  whole: (events, request) => messages.whole(events, named(request)),
  stream: (events, request) => messages.stream(events, named(request)),
};

/** Kinds that stand on one provider's word for several makers' models: each of their families. */
const families: readonly (readonly [name: string, model: string, voice: Voice])[] = [
  ['vertex', 'gemini-2.5-flash', await formatVoice('generate-content')],
  ['vertex', 'claude-sonnet-4-5', claudeOnVertex],
  ['vertex', 'mistral-medium-3', mistralVoice],
  ['vertex', 'meta/llama-3.3-70b-instruct-maas', chat],
  ['databricks', 'databricks-claude-sonnet-4-5', messages],
  ['snowflake', 'claude-sonnet-4-5', messages],
  ['azure-foundry', 'claude-sonnet-4-5', messages],
  ['azure-foundry', 'gpt-4.1', chat],
];

const tested = [
  ...Object.entries(presets).map(([name, { model, options = {} }]) => ({
    name,
    model,
    options,
    voice: chat,
  })),
  ...families.map(([name, model, voice]) => ({
    name,
    model,
    options: presets[name]?.options ?? {},
    voice,
  })),
].map((one, place) => ({ ...one, place }));
const kinds = new Map(
  await Promise.all(tested.map(async ({ name }) => [name, await presetKind(name)] as const)),
);

describe.each(tested)('$name with $model', ({ name, model, options, voice, place }) => {
  const cases = channelCases({
    channel({ url, key }) {
      const kind = kinds.get(name);
      if (kind === undefined) throw new Error(`no kind ${name}`);
      return kind({ ...options, id: name, key, baseUrl: `${url}/v1`, models: [model] });
    },
    model,
    voice,
  });
  // They have few lines of their own: of each a few cases, others of each.
  for (const { name: title, run } of inTurn(cases, place, 22)) test(title, run);
});

test('every channel kind that chats is tried so, here or beside the general ones', () => {
  const folder = join(import.meta.dirname, '../../channels');
  const others = readFileSync(join(import.meta.dirname, 'conformance.test.ts'), 'utf8');
  const chats = readdirSync(folder)
    .filter((file) => /^[a-z].*\.ts$/.test(file))
    .filter((file) => /\bchat:|openaiLike\(/.test(readFileSync(join(folder, file), 'utf8')))
    .map((file) => file.replace('.ts', ''));
  expect(chats.filter((name) => !kinds.has(name) && !others.includes(`/channels/${name}.ts'`))).toEqual([]);
});

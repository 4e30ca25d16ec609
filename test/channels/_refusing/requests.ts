import { readFileSync } from 'node:fs';
import type { Json } from './checks.ts';
import { clients, writers, type Client, type Turn, type Wanted } from './writers.ts';

export { clients, type Client };

/** One ordinary request. */
export interface Ordinary {
  readonly name: string;
  readonly wanted: Wanted;
  /** Effort that must reach the provider. */
  readonly effort?: 'high' | 'none';
  /** True for requests that are only sent to models with vision. */
  readonly sees?: true;
}

const weatherQuestion: readonly Turn[] = [{ user: 'What is the weather in Oslo?' }];
const called: readonly Turn[] = [...weatherQuestion, { calls: ['Oslo'] }, { gave: ['Oslo'] }];
const calledTwice: readonly Turn[] = [
  ...weatherQuestion,
  { calls: ['Oslo', 'Rome'] },
  { gave: ['Oslo', 'Rome'] },
];

/** Requests as ordinary clients send them. */
export const ordinary: readonly Ordinary[] = [
  { name: 'a text', wanted: {} },
  {
    name: 'a stream',
    wanted: { stream: true, more: { 'chat-completions': { stream_options: { include_usage: true } } } },
  },
  { name: 'instructions', wanted: { system: 'Be brief.' } },
  {
    name: 'the role developer',
    wanted: {
      system: 'Be brief.',
      more: {
        'chat-completions': {
          messages: [
            { role: 'developer', content: 'Be brief.' },
            { role: 'user', content: 'Hello' },
          ],
        },
      },
    },
  },
  {
    name: 'a history',
    wanted: { turns: [{ user: 'Hello' }, { assistant: 'Hi.' }, { user: 'Tell me a joke.' }] },
  },
  { name: 'temperature 0.7', wanted: { temperature: 0.7 } },
  { name: 'the highest temperature', wanted: { temperature: 2 } },
  { name: 'top_p', wanted: { topP: 0.9 } },
  { name: 'a limit', wanted: { most: 500 } },
  { name: 'the older limit', wanted: { more: { 'chat-completions': { max_tokens: 500 } } } },
  { name: 'a stop sequence', wanted: { stop: 'END' } },
  { name: 'top_k or seed', wanted: { topK: 40, seed: 7 } },
  { name: 'penalties', wanted: { penalties: true } },
  { name: 'effort high', wanted: { effort: 'high', most: 8000 }, effort: 'high' },
  { name: 'no thinking', wanted: { effort: 'none' }, effort: 'none' },
  { name: 'tools', wanted: { tools: true, turns: weatherQuestion } },
  { name: 'any tool', wanted: { tools: true, turns: weatherQuestion, choice: 'any' } },
  { name: 'one tool', wanted: { tools: true, turns: weatherQuestion, choice: 'weather' } },
  { name: 'what a tool gave', wanted: { tools: true, turns: called } },
  { name: 'what two tools gave', wanted: { tools: true, turns: calledTwice } },
  { name: 'a schema', wanted: { schema: true } },
  { name: 'JSON', wanted: { json: true, turns: [{ user: 'A city in JSON, please.' }] } },
  { name: 'an image', wanted: { turns: [{ user: 'What is this?', image: true }] }, sees: true },
  {
    name: 'a cache mark',
    wanted: { system: 'Be brief.', cached: true, tools: true, turns: weatherQuestion },
  },
  {
    name: 'an agent',
    wanted: {
      system: 'You are an agent.',
      tools: true,
      turns: called,
      stream: true,
      more: {
        // What Codex and the AI SDK send.
        'chat-completions': {
          stream_options: { include_usage: true },
          parallel_tool_calls: true,
          store: false,
          prompt_cache_key: 'session-1',
          user: 'u-1',
        },
        responses: {
          store: false,
          include: [],
          prompt_cache_key: 'session-1',
          parallel_tool_calls: true,
          tool_choice: 'auto',
        },
        // Claude Code.
        messages: { metadata: { user_id: 'u-1' }, temperature: 1 },
        // Gemini CLI.
        'generate-content': { generationConfig: { temperature: 1, topP: 0.95, topK: 64 } },
      },
    },
  },
];

const recorded = JSON.parse(
  readFileSync(new URL('../../fixtures/messages/requests/coding-agent.json', import.meta.url), 'utf8'),
) as { readonly body: Json };
const { model: _model, ...loop } = recorded.body;
/** Every model gives so much output. */
const claudeCode: Json = { ...loop, max_tokens: 4000 };

/** Requests of Claude Code 2.1: one of its main loop, and one of an agent that it starts, which shall not think. */
export const agents: readonly { readonly name: string; readonly body: Json }[] = [
  { name: 'Claude Code', body: claudeCode },
  // github:deepseek-ai/DeepSeek-V3#1397
  { name: 'an agent of Claude Code', body: { ...claudeCode, thinking: { type: 'disabled' } } },
];

/** Suffixes of model names that request thinking. */
export const suffixes = ['-high', '-low', '-thinking'] as const;

/** A request as a client of this format writes it, without the model. */
export function bodyFor(client: Client, { wanted }: Ordinary): Json {
  return { ...writers[client](wanted), ...wanted.more?.[client] };
}

/** Returns the path for a client of this format, and the fields of the body that name the model. */
export function pathFor(
  client: Client,
  model: string,
  stream: boolean,
): { readonly path: string; readonly named: Json } {
  const name = encodeURIComponent(model);
  switch (client) {
    case 'chat-completions':
      return { path: '/v1/chat/completions', named: { model } };
    case 'responses':
      return { path: '/v1/responses', named: { model } };
    case 'messages':
      return { path: '/v1/messages', named: { model } };
    case 'generate-content':
      return {
        path: `/v1beta/models/${name}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
        named: {},
      };
    default:
      return { path: `/model/${name}/${stream ? 'converse-stream' : 'converse'}`, named: {} };
  }
}

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { everything } from '../support/tries.ts';
import { startTokenServer } from './_tokens.ts';
import { judge } from './_refusing/fake.ts';
import { reportOf, runMatrix, type Outcome } from './_refusing/matrix.ts';
import { isKnown, isOpen, unexplainedCases, writeOpen } from './_refusing/open-cases.ts';
import { agents, bodyFor, clients, ordinary, suffixes, type Client } from './_refusing/requests.ts';
import { rows, type Row } from './_refusing/rows.ts';
import { rules } from './_refusing/table.ts';

const tokens = await startTokenServer();
afterAll(() => tokens.close());

/** `SLUICE_REFUSALS=FILE` tries everything, writes the report to that file, and lists anew what does not hold. */
const report = process.env['SLUICE_REFUSALS'];
/** `SLUICE_REFUSALS_KINDS=bedrock,cohere` tries these channel kinds alone. */
const kinds = process.env['SLUICE_REFUSALS_KINDS']?.split(',');
const chosen = kinds === undefined ? rows : rows.filter(({ kind }) => kinds.includes(kind));

const describeOutcome = ({ row, client, request, result, reason, effort }: Outcome): string =>
  `${row.kind} ${row.model} · ${request} · ${client}: ${result === 'accepted' ? `the effort was ${effort ?? 'kept'}` : `${result}: ${reason ?? ''}`}`;

/** Of each request to each model one client in turn, and all of them with `npm run fuzz`. */
const names = [...[...ordinary, ...agents].map(({ name }) => name), ...suffixes];
function isSelected(row: Row, client: Client, request: string): boolean {
  if (everything || report !== undefined) return true;
  return (rows.indexOf(row) + names.indexOf(request) + clients.indexOf(client)) % clients.length === 0;
}

test('ordinary requests of all clients are accepted by providers that refuse what the real ones refuse, and requested efforts reach them', async () => {
  const outcomes = await runMatrix(chosen, tokens.url, isSelected);
  if (report !== undefined) {
    writeFileSync(report, reportOf(outcomes));
    writeOpen(outcomes, chosen);
    return;
  }
  expect(outcomes.filter((one) => isOpen(one) && !isKnown(one)).map(describeOutcome)).toEqual([]);
});

test('every case that stays open says why', () => {
  expect(unexplainedCases()).toEqual([]);
});

const anyRow = (kind: string, model: string): Row => ({ kind, model, control: 'never' });
const messages = [{ role: 'user', content: 'Hello' }];
const call = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } };
const tool = { type: 'function', function: { name: 'f', parameters: { type: 'object' } } };

describe('the fakes refuse', () => {
  test.each([
    ['openai', 'gpt-5-mini', { max_tokens: 5 }, /'max_tokens' is not supported/],
    ['openai', 'gpt-4o', { top_k: 5 }, /Unrecognized request argument supplied: top_k/],
    ['openai', 'gpt-5.6-sol', { tools: [tool] }, /Function tools with reasoning_effort/],
    ['groq', 'openai/gpt-oss-120b', { prompt_cache_key: 'k' }, /property 'prompt_cache_key' is unsupported/],
    ['mistral', 'mistral-large-latest', { max_completion_tokens: 5 }, /extra_forbidden/],
    [
      'deepseek',
      'deepseek-v4-flash',
      { tool_choice: 'required', tools: [tool] },
      /does not support this tool_choice/,
    ],
    ['deepseek', 'deepseek-v4-flash', { messages: [{ role: 'developer', content: '' }] }, /unknown variant/],
    [
      'moonshot',
      'kimi-k2.6',
      { messages: [...messages, { role: 'assistant', tool_calls: [call] }] },
      /reasoning_content is missing/,
    ],
    ['moonshot', 'kimi-k2.6', { temperature: 0.7 }, /only 1 is allowed/],
    ['dashscope', 'qwen3-32b', {}, /must be set to false for non-streaming/],
    ['xai', 'grok-4.3', { stop: ['END'] }, /does not support parameter stop/],
    ['iflytek', '4.0Ultra', { top_k: 40 }, /top_k must be between 1 and 6/],
    ['qianfan', 'ernie-4.5-turbo-128k', { messages: [...messages, ...messages] }, /odd index/],
    ['snowflake', 'llama3.1-70b', { tools: [tool] }, /tools is not supported by this model/],
    [
      'friendli',
      'any',
      { tools: [tool], response_format: { type: 'json_object' } },
      /unsupported when tools/,
    ],
    [
      'modelscope',
      'any',
      { messages: [{ role: 'user', content: [{ type: 'text', text: '' }] }] },
      /valid string/,
    ],
  ])('at %s for %s: %j', (kind, model, members, sentence) => {
    const body = { model, messages, ...members };
    const { refused } = judge(anyRow(kind, model), 'chat-completions', body, false);
    expect(refused?.rule.says.replaceAll('$', refused.member)).toMatch(sentence);
  });

  test('nothing of what is right', () => {
    const accepted = [
      ['openai', 'gpt-5-mini', { max_completion_tokens: 5, reasoning_effort: 'low' }],
      ['moonshot', 'kimi-k2.6', { tool_choice: 'required', tools: [tool], thinking: { type: 'disabled' } }],
      ['dashscope', 'qwen3-32b', { enable_thinking: false }],
    ] as const;
    for (const [kind, model, members] of accepted)
      expect(
        judge(anyRow(kind, model), 'chat-completions', { model, messages, ...members }, false).refused,
      ).toBeUndefined();
  });
});

test('every rule says where it is known from, and holds for a model that is tried', () => {
  expect(
    rules.filter(
      ({ source }) => !/github:|https:\/\/|@[\w-]+\/|LiteLLM|openai 6|cohere-ai|langchain-aws/.test(source),
    ),
  ).toEqual([]);
  const bare = { messages: [] };
  const wires = [
    'chat-completions',
    'responses',
    'messages',
    'invoke',
    'generate-content',
    'converse',
    'cohere',
  ];
  for (const row of rows) for (const wire of wires) expect(() => judge(row, wire, bare, false)).not.toThrow();
});

test('there are as many requests as are promised, in the words of every client', () => {
  expect(ordinary).toHaveLength(25);
  for (const client of clients)
    for (const request of ordinary) expect(Object.keys(bodyFor(client, request))).not.toEqual([]);
});

test('every channel kind that chats is tried', () => {
  const folder = join(import.meta.dirname, '../../channels');
  const chats = readdirSync(folder)
    .filter((file) => /^[a-z].*\.ts$/.test(file))
    .filter((file) => /\bchat:|openaiLike\(/.test(readFileSync(join(folder, file), 'utf8')))
    .map((file) => file.replace('.ts', ''));
  expect(chats.filter((kind) => !rows.some((row) => row.kind === kind))).toEqual([]);
});

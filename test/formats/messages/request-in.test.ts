import { describe, expect, it } from 'vitest';
import { sealProof } from '../../../core/formats/_shared/proof.ts';
import messages from '../../../core/formats/messages/index.ts';
import type { JsonObject } from '../../../core/model/json.ts';
import { bodyOf, chat, count, encode, refusal } from './support.ts';

const base = { model: 'm', max_tokens: 10, messages: [{ role: 'user', content: 'Hi' }] } satisfies JsonObject;
const withContent = (...content: JsonObject[]): JsonObject => ({
  ...base,
  messages: [{ role: 'user', content }],
});
const withTool = (tool: unknown): JsonObject => ({ ...base, tools: [tool as JsonObject] });

describe('a wrong field is refused by its name', () => {
  it.each<[string, JsonObject]>([
    ['model', { ...base, model: null }],
    ['model', { ...base, model: 7 }],
    ['max_tokens', { model: 'm', messages: base.messages }],
    ['max_tokens', { ...base, max_tokens: 1.5 }],
    ['max_tokens', { ...base, max_tokens: -1 }],
    ['max_tokens', { ...base, max_tokens: '10' }],
    ['messages', { model: 'm', max_tokens: 10 }],
    ['messages', { ...base, messages: [] }],
    ['messages', { ...base, messages: 'Hi' }],
    ['messages[0]', { ...base, messages: ['Hi'] }],
    ['messages[0].role', { ...base, messages: [{ content: 'Hi' }] }],
    ['messages[0].role', { ...base, messages: [{ role: 'tool', content: 'Hi' }] }],
    ['messages[0].role', { ...base, messages: [{ role: 'assistant', content: 'Hi' }] }],
    [
      'messages[1].role',
      {
        ...base,
        messages: [
          { role: 'system', content: 'S' },
          { role: 'assistant', content: 'Hi' },
        ],
      },
    ],
    ['messages[0].content', { ...base, messages: [{ role: 'user' }] }],
    ['messages[0].content', { ...base, messages: [{ role: 'user', content: 7 }] }],
    ['messages[0].content[0]', { ...base, messages: [{ role: 'user', content: ['Hi'] }] }],
    ['messages[0].content[0].type', withContent({ text: 'Hi' })],
    ['messages[0].content[0].text', withContent({ type: 'text' })],
    ['messages[0].content[1].text', withContent({ type: 'text', text: 'a' }, { type: 'text', text: 1 })],
    ['messages[0].content[0].citations', withContent({ type: 'text', text: 'a', citations: {} })],
    ['messages[0].content[0].citations[0]', withContent({ type: 'text', text: 'a', citations: ['x'] })],
    [
      'messages[0].content[0].cache_control',
      withContent({ type: 'text', text: 'a', cache_control: 'ephemeral' }),
    ],
    [
      'messages[0].content[0].cache_control.ttl',
      withContent({ type: 'text', text: 'a', cache_control: { type: 'ephemeral', ttl: 300 } }),
    ],
    ['messages[0].content[0].source', withContent({ type: 'image' })],
    ['messages[0].content[0].source.type', withContent({ type: 'image', source: { data: 'x' } })],
    [
      'messages[0].content[0].source.data',
      withContent({ type: 'image', source: { type: 'base64', media_type: 'image/png' } }),
    ],
    [
      'messages[0].content[0].source.media_type',
      withContent({ type: 'image', source: { type: 'base64', data: 'AAAA' } }),
    ],
    ['messages[0].content[0].source.url', withContent({ type: 'image', source: { type: 'url' } })],
    ['messages[0].content[0].source.file_id', withContent({ type: 'document', source: { type: 'file' } })],
    [
      'messages[0].content[0].title',
      withContent({ type: 'document', title: 1, source: { type: 'file', file_id: 'f' } }),
    ],
    ['messages[0].content[0].id', withContent({ type: 'tool_use', name: 'f', input: {} })],
    ['messages[0].content[0].name', withContent({ type: 'tool_use', id: 'a', input: {} })],
    ['messages[0].content[0].input', withContent({ type: 'tool_use', id: 'a', name: 'f', input: '{}' })],
    ['messages[0].content[0].tool_use_id', withContent({ type: 'tool_result', content: 'x' })],
    ['messages[0].content[0].content', withContent({ type: 'tool_result', tool_use_id: 'a', content: 7 })],
    [
      'messages[0].content[0].content[0].text',
      withContent({ type: 'tool_result', tool_use_id: 'a', content: [{ type: 'text' }] }),
    ],
    [
      'messages[0].content[0].is_error',
      withContent({ type: 'tool_result', tool_use_id: 'a', is_error: 'no' }),
    ],
    ['messages[0].content[0].data', withContent({ type: 'redacted_thinking' })],
    ['messages[0].content[0].signature', withContent({ type: 'thinking', thinking: 'x', signature: 1 })],
    ['system', { ...base, system: 7 }],
    ['system[0].text', { ...base, system: [{ type: 'text' }] }],
    ['stream', { ...base, stream: 'yes' }],
    ['temperature', { ...base, temperature: 1.1 }],
    ['temperature', { ...base, temperature: '0' }],
    ['top_p', { ...base, top_p: -0.1 }],
    ['top_k', { ...base, top_k: 1.5 }],
    ['stop_sequences[1]', { ...base, stop_sequences: ['a', 1] }],
    ['metadata', { ...base, metadata: 'u' }],
    ['metadata.user_id', { ...base, metadata: { user_id: 1 } }],
    ['service_tier', { ...base, service_tier: 1 }],
    ['thinking', { ...base, thinking: true }],
    ['thinking.type', { ...base, thinking: { budget_tokens: 2048 } }],
    ['thinking.budget_tokens', { ...base, thinking: { type: 'enabled', budget_tokens: '2048' } }],
    ['thinking.budget_tokens', { ...base, thinking: { type: 'enabled', budget_tokens: -1 } }],
    ['thinking.display', { ...base, thinking: { type: 'adaptive', display: 1 } }],
    ['output_config', { ...base, output_config: 'high' }],
    ['output_config.effort', { ...base, output_config: { effort: 3 } }],
    ['output_config.format', { ...base, output_config: { format: 'json' } }],
    ['output_config.format.schema', { ...base, output_config: { format: { type: 'json_schema' } } }],
    ['tools', { ...base, tools: {} }],
    ['tools[0]', withTool('f')],
    ['tools[0].name', withTool({ input_schema: {} })],
    ['tools[0].name', withTool({ name: 'no spaces', input_schema: {} })],
    ['tools[0].name', withTool({ name: 'x'.repeat(129), input_schema: {} })],
    ['tools[0].input_schema', withTool({ name: 'f' })],
    ['tools[0].input_schema', withTool({ name: 'f', input_schema: 'object' })],
    ['tools[0].input_schema.type', withTool({ name: 'f', input_schema: {} })],
    ['tools[0].input_schema.type', withTool({ name: 'f', input_schema: { type: 'string' } })],
    ['tools[0].description', withTool({ name: 'f', description: 1, input_schema: {} })],
    ['tools[0].strict', withTool({ name: 'f', strict: 1, input_schema: { type: 'object' } })],
    ['tool_choice', { ...base, tool_choice: 'auto' }],
    ['tool_choice.type', { ...base, tool_choice: {} }],
    ['tool_choice.name', { ...base, tool_choice: { type: 'tool' } }],
    [
      'tool_choice.disable_parallel_tool_use',
      { ...base, tool_choice: { type: 'auto', disable_parallel_tool_use: 1 } },
    ],
  ])('%s', (param, body) => {
    const error = refusal(() => chat.validate(body, {}));
    expect(error.status).toBe(400);
    expect(error.param).toBe(param);
    expect(error.message).toContain(param);
    expect(refusal(() => chat.decodeRequest(body, {})).param).toBe(param);
  });

  it('model and stream are checked before anything else is read', () => {
    expect(refusal(() => chat.peek({}, {})).param).toBe('model');
    expect(refusal(() => chat.peek({ model: 'm', stream: 1 }, {})).param).toBe('stream');
    expect(chat.peek({ model: 'm', stream: true }, {})).toEqual({ model: 'm', stream: true });
    expect(count.peek({ model: 'm', stream: true }, {})).toEqual({ model: 'm', stream: false });
  });
});

describe('what clients may send', () => {
  it.each<[string, JsonObject]>([
    [
      'nulls for everything optional',
      {
        ...base,
        system: null,
        stream: null,
        temperature: null,
        tools: null,
        tool_choice: null,
        thinking: null,
        output_config: null,
        metadata: null,
        stop_sequences: null,
        service_tier: null,
        top_k: null,
      },
    ],
    [
      'a budget below 1024, which another format can take',
      { ...base, thinking: { type: 'enabled', budget_tokens: 512 } },
    ],
    [
      'a budget as large as the output',
      { ...base, thinking: { type: 'enabled', budget_tokens: 32_000 }, max_tokens: 32_000 },
    ],
    ['no budget at all', { ...base, thinking: { type: 'enabled' } }],
    ['roles that do not alternate', { ...base, messages: [...base.messages, ...base.messages] }],
    ['a tool name of 128 characters', withTool({ name: 'x'.repeat(128), input_schema: { type: 'object' } })],
    ['blocks of kinds not known yet', withContent({ type: 'hologram', x: 1 })],
    ['sources not known yet', withContent({ type: 'image', source: { type: 'quantum' } })],
    ['tool choices not known yet', { ...base, tool_choice: { type: 'maybe' } }],
    ['blocks with the names of built-in things', withContent({ type: 'constructor' }, { type: '__proto__' })],
    ['tools with the names of built-in things', withTool({ type: 'constructor' })],
    ['thinking with the name of a built-in thing', { ...base, thinking: { type: 'constructor' } }],
  ])('%s', (_name, body) => {
    expect(() => chat.validate(body, {})).not.toThrow();
  });

  it('counts need no max_tokens', () => {
    expect(count.decodeRequest({ model: 'm', messages: base.messages }, {}).operation).toBe('count-tokens');
  });

  it('very deep input is refused, not fatal', () => {
    const depth = 200_000;
    const input = JSON.parse(`${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`) as JsonObject;
    const error = refusal(() =>
      chat.validate(withContent({ type: 'tool_use', id: 'a', name: 'f', input }), {}),
    );
    expect(error.param).toBe('messages[0].content[0].input');
    const results = `${'{"type":"tool_result","tool_use_id":"a","content":['.repeat(20_000)}${']}'.repeat(20_000)}`;
    expect(() => chat.validate(withContent(JSON.parse(results) as JsonObject), {})).not.toThrow();
  });
});

describe('what a request means', () => {
  it('instructions, turns and their places', () => {
    const request = chat.decodeRequest(bodyOf('system-in-the-middle'), {});
    expect(request.system.map(({ at }) => at)).toEqual(['system']);
    expect(request.messages.map(({ role, at }) => `${at} ${role}`)).toEqual([
      'messages[0] user',
      'messages[1] assistant',
      'messages[2] user',
      'messages[3] system',
      'messages[4] user',
    ]);
  });

  it('system turns at the head are instructions', () => {
    const request = chat.decodeRequest(bodyOf('system-first'), {});
    expect(request.system).toHaveLength(1);
    expect(request.messages.map(({ role }) => role)).toEqual(['user']);
  });

  it('a text document is a file that any format can carry', () => {
    const request = chat.decodeRequest(bodyOf('documents'), {});
    expect(request.messages[0]?.content[1]).toMatchObject({
      type: 'file',
      name: 'Notes',
      source: {
        kind: 'data',
        mimeType: 'text/plain',
        data: Buffer.from('Grüße, 世界 🌍\n\nA plain text.').toString('base64'),
      },
    });
  });

  it('settings are neutral', () => {
    expect(chat.decodeRequest(bodyOf('settings'), {}).settings).toEqual({
      maxOutput: 1000,
      temperature: 0.7,
      topP: 0.9,
      topK: 40,
      stop: ['END', '\n\nHuman:'],
      user: 'user-123',
      serviceTier: 'default',
    });
    expect(chat.decodeRequest(bodyOf('thinking-adaptive'), {}).settings.reasoning).toEqual({
      mode: 'adaptive',
      show: true,
      display: 'summarized',
      effort: 'xhigh',
    });
    expect(chat.decodeRequest(bodyOf('conversation'), {})).toMatchObject({
      toolChoice: { type: 'auto' },
      settings: { parallelTools: false },
    });
  });

  it('a proof of another vendor is known by its maker', () => {
    const proof = { format: 'generate-content', kind: 'signature', value: 'sig' } as const;
    const encrypted = { format: 'responses', kind: 'encrypted', value: 'enc' } as const;
    const request = chat.decodeRequest(
      {
        ...base,
        messages: [
          { role: 'user', content: 'Hi' },
          {
            role: 'assistant',
            content: [
              { type: 'thinking', thinking: 'Hm.', signature: sealProof(proof) },
              { type: 'thinking', thinking: '', signature: sealProof(encrypted) },
              { type: 'text', text: 'One' },
              { type: 'thinking', thinking: '', signature: sealProof(proof, 'text') },
              { type: 'text', text: 'Two' },
              { type: 'thinking', thinking: '', signature: sealProof(proof, 'tool-call') },
              { type: 'tool_use', id: 'a', name: 'f', input: {} },
              { type: 'thinking', thinking: '', signature: sealProof(proof, 'text') },
            ],
          },
        ],
      },
      {},
    );
    const content = request.messages[1]?.content.map((block) => ({
      type: block.type,
      proof: 'proof' in block ? block.proof : undefined,
    }));
    expect(content).toEqual([
      { type: 'reasoning', proof },
      { type: 'reasoning', proof: encrypted },
      { type: 'text', proof },
      { type: 'text', proof: undefined },
      { type: 'tool-call', proof },
      { type: 'text', proof },
    ]);
  });
});

describe('the version header', () => {
  const check = messages.routes[0]?.checkHeaders;
  it.each([
    { 'anthropic-version': '2023-06-01' },
    { 'a-version': '2023-06-01' },
    { 'anthropic-version': '2026-10-21' },
    { 'anthropic-version': '2030-01-01', 'a-version': 'nonsense' },
    { 'anthropic-version': '', 'a-version': '2023-06-01' },
  ])('%j is accepted', (headers) => {
    expect(() => check?.(headers)).not.toThrow();
  });

  it.each([
    {},
    { 'anthropic-version': '' },
    { 'anthropic-version': 'latest' },
    { 'anthropic-version': '2023-05-31' },
    { 'anthropic-version': '2023-13-01' },
    { 'anthropic-version': '2025-02-30' },
    { 'anthropic-version': 'x', 'a-version': '2023-06-01' },
  ])('%j is refused by name', (headers) => {
    const error = refusal(() => check?.(headers));
    expect(error.message).toContain('anthropic-version');
    expect(messages.errorReply(error, 'req_1')).toMatchObject({
      status: 400,
      body: { error: { type: 'invalid_request_error' } },
    });
  });

  it('is asked for on counts too', () => {
    expect(messages.routes.map(({ path, checkHeaders }) => [path, checkHeaders !== undefined])).toEqual([
      ['/v1/messages', true],
      ['/v1/messages/count_tokens', true],
    ]);
  });
});

describe('on a channel of the same format', () => {
  it('versions and beta flags travel, in the official spelling', () => {
    const headers = {
      'a-version': '2023-06-01',
      'a-beta': 'x-2025-01-01',
      'user-agent': 'me',
      authorization: 'no',
    };
    const expected = { 'anthropic-version': '2023-06-01', 'anthropic-beta': 'x-2025-01-01' };
    expect(chat.passThrough('m', true, headers)).toEqual({ path: '/messages', headers: expected });
    expect(count.passThrough('m', false, headers).path).toBe('/messages/count_tokens');
    expect(encode(chat.decodeRequest(base, {}), { headers }).headers).toEqual(expected);
  });

  it('a thread needs it', () => {
    expect(chat.onlyNative?.(base)).toBeUndefined();
    const error = chat.onlyNative?.(bodyOf('thread'));
    expect(error?.details).toEqual({ error_code: 'thread_unsupported_request' });
    expect(error && messages.errorReply(error, 'req_1').body).toEqual({
      type: 'error',
      error: {
        type: 'invalid_request_error',
        message: error?.message,
        details: { error_code: 'thread_unsupported_request' },
      },
      request_id: 'req_1',
    });
  });

  it('a budget that every provider refuses is refused with its path', () => {
    const request = chat.decodeRequest({ ...base, thinking: { type: 'enabled', budget_tokens: 512 } }, {});
    expect(refusal(() => encode(request)).param).toBe('thinking.budget_tokens');
    const adaptive = encode(request, { traits: { reasoning: 'adaptive' } });
    expect(adaptive.body).toMatchObject({ thinking: { type: 'adaptive' }, output_config: { effort: 'low' } });
  });

  it('thinking without a budget gets one', () => {
    const request = chat.decodeRequest({ ...base, max_tokens: 10_000, thinking: { type: 'enabled' } }, {});
    expect(encode(request).body.thinking).toEqual({ type: 'enabled', budget_tokens: 8000 });
  });

  it('thinking is asked for in the words that the model takes', () => {
    const enabled = chat.decodeRequest({ ...bodyOf('thinking-tool-loop'), temperature: 1 }, {});
    const adaptive = encode(enabled, { traits: { reasoning: 'adaptive' } });
    expect(adaptive.body).toMatchObject({
      thinking: { type: 'adaptive' },
      output_config: { effort: 'medium' },
      temperature: 1,
    });
    const old = encode(chat.decodeRequest(bodyOf('thinking-adaptive'), {}), {
      traits: { reasoning: 'budget' },
    });
    expect(old.body.thinking).toEqual({ type: 'enabled', budget_tokens: 31_999, display: 'summarized' });
    expect(old.body.output_config).toEqual({ task_budget: { type: 'tokens', total: 64_000 } });
    expect(old.losses).toContain('settings.reasoning.effort');
    expect(old.losses).toContain('thinking.x_thinking');
  });

  it("another vendor's thinking is left out, and an open tool loop then goes on without thinking", () => {
    const foreign = sealProof({ format: 'generate-content', kind: 'signature', value: 's' });
    const body: JsonObject = {
      ...base,
      max_tokens: 4000,
      thinking: { type: 'enabled', budget_tokens: 2048 },
      messages: [
        { role: 'user', content: 'Hi' },
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'Hm', signature: foreign },
            { type: 'tool_use', id: 'a', name: 'f', input: {} },
          ],
        },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: 'x' }] },
      ],
    };
    const { body: encoded, losses } = encode(chat.decodeRequest(body, {}));
    expect(JSON.stringify(encoded)).not.toContain('gw1.');
    expect(encoded.thinking).toBeUndefined();
    expect(losses).toEqual(['messages[1].content[0]', 'messages[1].content[0].proof', 'settings.reasoning']);
  });

  it('citations that the gateway made for a client never reach a provider', () => {
    const body: JsonObject = {
      ...base,
      messages: [
        ...base.messages,
        {
          role: 'assistant',
          content: [
            {
              type: 'text',
              text: 'A',
              citations: [
                {
                  type: 'web_search_result_location',
                  url: 'https://a.example',
                  title: 'A',
                  cited_text: '',
                  encrypted_index: `gw1.${Buffer.from('{"start":0,"end":1}').toString('base64url')}`,
                },
              ],
            },
          ],
        },
      ],
    };
    const request = chat.decodeRequest(body, {});
    expect(request.messages[1]?.content[0]).toMatchObject({
      citations: [{ url: 'https://a.example', title: 'A', start: 0, end: 1 }],
    });
    const { body: encoded, losses } = encode(request);
    expect(JSON.stringify(encoded)).not.toContain('gw1.');
    expect(losses).toEqual(['messages[1].content[0].citations']);
  });

  it('tool names that are too long for the channel are shortened and come back', () => {
    const { body, toolNames } = encode(chat.decodeRequest(bodyOf('tool-options'), {}), {
      traits: { toolNameLimit: 64 },
    });
    const [, long] = body.tools as JsonObject[];
    expect(String(long?.name)).toHaveLength(64);
    expect(toolNames?.back(String(long?.name))).toMatch(/one_hundred$/);
  });
});

describe('patch', () => {
  it('changes nothing but what it is told', () => {
    const body = bodyOf('coding-agent');
    expect(chat.patch(body, { model: 'other' }, {})).toEqual({ ...body, model: 'other' });
    expect(chat.patch(body, { settings: { maxOutput: 5 } }, {})).toEqual({ ...body, max_tokens: 5 });
    expect(count.patch({ model: 'm' }, { settings: { maxOutput: 5 } }, {})).toEqual({ model: 'm' });
  });

  it('turns thinking on in the words of the model, and takes out what is refused beside it', () => {
    const body = {
      ...base,
      max_tokens: 10_000,
      temperature: 0.5,
      top_p: 0.5,
      top_k: 5,
      tool_choice: { type: 'tool', name: 'f' },
    };
    expect(chat.patch(body, { settings: { reasoning: { mode: 'on' } } }, {})).toEqual({
      ...base,
      max_tokens: 10_000,
      thinking: { type: 'enabled', budget_tokens: 8000 },
      tool_choice: { type: 'tool', name: 'f' },
    });
    expect(chat.patch(base, { settings: { reasoning: { mode: 'on' } } }, { reasoning: 'adaptive' })).toEqual({
      ...base,
      thinking: { type: 'adaptive' },
    });
    expect(chat.patch(base, { settings: { reasoning: { mode: 'off' } } }, {})).toEqual({
      ...base,
      thinking: { type: 'disabled' },
    });
  });

  it('keeps the rest of output_config when it sets the effort', () => {
    const body = bodyOf('thinking-adaptive');
    expect(chat.patch(body, { settings: { reasoning: { effort: 'low' } } }, {})).toMatchObject({
      thinking: { type: 'adaptive' },
      output_config: { effort: 'low', task_budget: { type: 'tokens', total: 64_000 } },
    });
  });

  it('leaves thinking off where the history forbids it', () => {
    const body: JsonObject = { ...bodyOf('parallel-tools'), max_tokens: 9000 };
    const tools = (body.messages as JsonObject[]).slice(0, 3);
    expect(
      chat.patch({ ...body, messages: tools }, { settings: { reasoning: { effort: 'high' } } }, {}).thinking,
    ).toBeUndefined();
    expect(
      chat.patch(
        { ...bodyOf('prefill'), max_tokens: 9000 },
        { settings: { reasoning: { effort: 'high' } } },
        {},
      ).thinking,
    ).toBeUndefined();
  });
});

it("settings are named in the client's words", () => {
  expect(
    ['maxOutput', 'stop', 'user', 'reasoning', 'responseFormat', 'parallelTools', 'seed'].map((member) =>
      chat.settingPath(member as 'seed'),
    ),
  ).toEqual([
    'max_tokens',
    'stop_sequences',
    'metadata.user_id',
    'thinking',
    'output_config.format',
    'tool_choice.disable_parallel_tool_use',
    'seed',
  ]);
});

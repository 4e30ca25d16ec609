import { describe, expect, test } from 'vitest';
import { chat } from '../../../core/formats/converse/codec.ts';
import type { Block, ChatRequest, Tool } from '../../../core/model/chat.ts';
import type { JsonObject } from '../../../core/model/json.ts';
import type { ModelTraits } from '../../../core/model/traits.ts';

/** The request of a client of another format, as a provider of this one gets it. */
function sent(
  request: Partial<ChatRequest>,
  traits: ModelTraits = {},
): { readonly body: JsonObject; readonly losses: string[]; readonly path: string } {
  const losses: string[] = [];
  const { body, path } = chat.encodeRequest(
    {
      operation: 'chat',
      format: 'messages',
      model: 'm',
      stream: false,
      system: [],
      messages: [user({ type: 'text', text: 'Hi' })],
      tools: [],
      settings: {},
      ...request,
    },
    {
      model: 'arn:aws:bedrock:us-east-1:1:inference-profile/m',
      stream: request.stream === true,
      traits,
      headers: {},
      unsupported: 'refuse',
      drop: (lost) => losses.push(lost),
    },
  );
  return { body, losses, path };
}

const user = (...content: Block[]) => ({ role: 'user', content }) as const;
const assistant = (...content: Block[]) => ({ role: 'assistant', content }) as const;
const text = (words: string): Block => ({ type: 'text', text: words });
const call: Block = { type: 'tool-call', id: 'c 1', name: 'look', input: '{"at":1}' };
const result: Block = { type: 'tool-result', id: 'c 1', content: [text('seen')] };
const look: Tool = { type: 'function', name: 'look', at: 'tools[0]' };
const pdf = (name?: string): Block => ({
  type: 'file',
  source: { kind: 'data', data: 'JVBERi0xLjQK', mimeType: 'application/pdf' },
  ...(name === undefined ? {} : { name }),
});

test('an address with slashes and colons is one part of the path', () => {
  expect(sent({ stream: true }).path).toBe(
    '/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fm/converse-stream',
  );
});

describe('tools', () => {
  test('that a history names are declared where the client gave none: without them it is refused', () => {
    const { body } = sent({ messages: [user(text('Look.')), assistant(call), user(result)] });
    expect(body.toolConfig).toEqual({
      tools: [{ toolSpec: { name: 'look', inputSchema: { json: { type: 'object', properties: {} } } } }],
    });
  });

  test('that must not be called are left out, as there is no word for that', () => {
    const { body, losses } = sent({ tools: [look], toolChoice: { type: 'none' } });
    expect(body.toolConfig).toBeUndefined();
    expect(losses).toEqual(['tool_choice', 'tools[0]']);
  });

  test('stay where the history calls them', () => {
    const messages = [user(text('Look.')), assistant(call), user(result)];
    const { body, losses } = sent({ tools: [look], toolChoice: { type: 'none' }, messages });
    expect((body.toolConfig as JsonObject).tools).toHaveLength(1);
    expect(losses).toEqual(['tool_choice']);
  });
});

describe('documents', () => {
  test('have a name that no other has, of signs that providers take', () => {
    const { body } = sent({ messages: [user(text('Sum up.'), pdf('a/b.pdf'), pdf('a/b.pdf'), pdf())] });
    const [{ content }] = body.messages as unknown as [{ content: { document?: { name: string } }[] }];
    const names = content.flatMap(({ document }) => (document === undefined ? [] : [document.name]));
    expect(new Set(names).size).toBe(3);
    for (const name of names) expect(name).toMatch(/^[\p{L}\p{N}\s\-()[\]]+$/u);
  });

  test('are not alone: a turn that shows one also says something', () => {
    const { body } = sent({ messages: [user(pdf())] });
    const [{ content }] = body.messages as unknown as [{ content: JsonObject[] }];
    expect(content.at(-1)).toEqual({ text: '.' });
  });
});

describe('cache points', () => {
  const marked: Block = { type: 'text', text: 'Long.', cache: { ttl: '1h' } };

  test('stand behind what is marked', () => {
    const { body } = sent({ messages: [user(marked, text('Short.'))] });
    expect(body.messages).toEqual([
      {
        role: 'user',
        content: [{ text: 'Long.' }, { cachePoint: { type: 'default', ttl: '1h' } }, { text: 'Short.' }],
      },
    ]);
  });

  test('are left out, and reported, for a model that has none', () => {
    const { body, losses } = sent(
      { messages: [user({ ...marked, at: 'messages[0].content[0]' })] },
      { refuses: ['cache'] },
    );
    expect(JSON.stringify(body)).not.toContain('cachePoint');
    expect(losses).toEqual(['messages[0].content[0].cache']);
  });
});

describe('reasoning', () => {
  const settings = { reasoning: { effort: 'high' }, maxOutput: 30_000, temperature: 0.2 } as const;

  test('is a budget for models that count one, and takes what they refuse beside it', () => {
    const { body, losses } = sent({ settings }, { reasoning: 'budget' });
    expect(body.additionalModelRequestFields).toEqual({
      thinking: { type: 'enabled', budget_tokens: 24_576 },
    });
    expect(body.inferenceConfig).toEqual({ maxTokens: 30_000 });
    expect(losses).toEqual(['settings.temperature']);
  });

  const levels: ModelTraits = { reasoning: 'level', efforts: ['none', 'low', 'medium', 'high'] };

  test('is a level for models that have levels, and high takes what is refused beside it', () => {
    const { body, losses } = sent({ settings: { ...settings, maxOutput: undefined } as never }, levels);
    expect(body.additionalModelRequestFields).toEqual({
      reasoningConfig: { type: 'enabled', maxReasoningEffort: 'high' },
    });
    expect(body.inferenceConfig).toBeUndefined();
    expect(losses).toEqual(['settings.temperature']);
  });

  test('is the middle level where an output limit counts, which high is refused beside', () => {
    const { body, losses } = sent({ settings }, levels);
    expect(body.additionalModelRequestFields).toEqual({
      reasoningConfig: { type: 'enabled', maxReasoningEffort: 'medium' },
    });
    expect(body.inferenceConfig).toEqual({ maxTokens: 30_000, temperature: 0.2 });
    expect(losses).toEqual(['settings.reasoning.effort']);
    const most = sent({ settings }, { ...levels, outputLimit: 30_000 });
    expect(most.body.inferenceConfig).toBeUndefined();
    expect(most.losses).toEqual(['settings.temperature']);
  });

  test('is switched off where levels are', () => {
    const { body, losses } = sent({ settings: { reasoning: { mode: 'off' } } }, levels);
    expect(body.additionalModelRequestFields).toEqual({ reasoningConfig: { type: 'disabled' } });
    expect(losses).toEqual([]);
  });

  test.each([
    [
      { reasoning: 'effort', efforts: ['low', 'medium', 'high'] },
      { effort: 'high' },
      { reasoning_effort: 'high' },
    ],
    [
      { reasoning: 'object', efforts: ['none', 'low', 'high'] },
      { effort: 'high' },
      { reasoning: { effort: 'high' } },
    ],
    [
      { reasoning: 'object', efforts: ['none', 'low'], thinksByDefault: true },
      { mode: 'off' },
      { reasoning: { effort: 'none' } },
    ],
    [{ reasoning: 'effort', efforts: ['none', 'high'] }, { effort: 'none' }, undefined],
    [{ reasoning: 'effort', efforts: ['low', 'high'] }, { mode: 'on' }, { reasoning_effort: 'low' }],
    [{ reasoning: 'effort', efforts: ['low', 'high'] }, { budget: 30_000 }, { reasoning_effort: 'high' }],
  ] as const)('of a model that is asked by %j: %j is %j', (traits, reasoning, fields) => {
    expect(sent({ settings: { reasoning } }, traits).body.additionalModelRequestFields).toEqual(fields);
  });

  test('is left out for a tool loop whose reasoning is gone', () => {
    const messages = [user(text('Look.')), assistant(call), user(result)];
    const { body, losses } = sent(
      { settings: { reasoning: { effort: 'high' } }, messages, tools: [look] },
      { reasoning: 'budget' },
    );
    expect(body.additionalModelRequestFields).toBeUndefined();
    expect(losses).toContain('settings.reasoning.effort');
  });
});

test('a picture by address is refused by its place: it has to be fetched first', () => {
  const picture: Block = {
    type: 'image',
    source: { kind: 'url', url: 'https://example.com/cat.png' },
    at: 'messages[0].content[0]',
  };
  expect(() => sent({ messages: [user(picture)] })).toThrow(
    /messages\[0\]\.content\[0\].*an image by address/,
  );
  expect(chat.wantsBytes?.(picture as never, {})).toBe(true);
});

test('an edit leaves the client its own body, also where the object that the edit goes into is empty', () => {
  const body = { messages: [], inferenceConfig: {}, additionalModelRequestFields: {}, outputConfig: {} };
  const before = structuredClone(body);
  const patched = chat.patch(body, { settings: { reasoning: { budget: 20_000 } } }, {});
  expect(patched.additionalModelRequestFields).toMatchObject({ thinking: { budget_tokens: 20_000 } });
  expect(patched.inferenceConfig).toHaveProperty('maxTokens');
  expect(body).toEqual(before);
});

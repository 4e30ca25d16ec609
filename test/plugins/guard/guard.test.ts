import * as fc from 'fast-check';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { GatewayEvent, Message } from 'sluice';
import { reply, testPlugins, text, thought, toolCall, type TestedPlugins } from 'sluice/testing';
import guard, { guardTags } from '../../../plugins/guard/index.ts';
import { tries } from '../../support/tries.ts';

type Options = NonNullable<Parameters<typeof guard>[0]>;
type CheckEntry = NonNullable<Options['checks']>[number];

const formats = ['chat-completions', 'responses', 'messages', 'generate-content'] as const;

async function guarded(checks: readonly CheckEntry[], more: Options = {}): Promise<TestedPlugins> {
  const tested = await testPlugins(guard({ checks: [...checks], ...more }));
  onTestFinished(() => tested.close());
  return tested;
}

const pii: CheckEntry = { name: 'pii', kind: 'entities', entities: ['all'], action: 'mask', restore: true };
const refusing: CheckEntry = { name: 'no-cards', kind: 'entities', entities: ['card'], action: 'refuse' };

/** A text in pieces of so many characters. */
const inPieces = (whole: string, size: number): readonly string[] =>
  Array.from({ length: Math.ceil(whole.length / size) }, (_, index) =>
    whole.slice(index * size, (index + 1) * size),
  );

function textOf(
  events: readonly GatewayEvent[],
  type: 'text-delta' | 'reasoning-delta' | 'refusal-delta',
): string {
  return events.map((event) => (event.type === type ? event.text : '')).join('');
}

function argumentsOf(events: readonly GatewayEvent[]): string {
  return events.map((event) => (event.type === 'tool-delta' ? event.input : '')).join('');
}

describe('masking with restore', () => {
  const userText =
    'Write to ada@example.org and "bob@example.org", card 4111 1111 1111 1111. Not to ada@example.org.';

  test.each(formats.flatMap((format) => [false, true].map((stream) => [format, stream] as const)))(
    'hides entities from the provider and gives them back: %s, stream %s',
    async (format, stream) => {
      const tested = await guarded([pii]);
      const {
        text: answer,
        sent,
        wire,
      } = await tested.run(
        { messages: [userText], format, stream },
        { reply: ({ text: prompt }) => reply(text(...inPieces(`You said: ${prompt}`, 3))) },
      );
      expect(sent[0]?.text).not.toMatch(/@|4111/);
      expect(sent[0]?.text).toMatch(
        format === 'responses'
          ? /^Write to \[(EMAIL_\w{6})\] and "\[EMAIL_\w{6}\]", card \[CARD_\w{6}\]\. Not to \[\1\]\.$/
          : /^Write to \[EMAIL_1\] and "\[EMAIL_2\]", card \[CARD_1\]\. Not to \[EMAIL_1\]\.$/,
      );
      expect(answer).toBe(`You said: ${userText}`);
      expect(wire).not.toContain('EMAIL_');
    },
  );

  test('restores reasoning, refusals and arguments of tools, which stay JSON', async () => {
    const tested = await guarded([
      {
        name: 'names',
        kind: 'words',
        words: ['the "quoted"\nname', 'Ada'],
        within: true,
        label: 'NAME',
        action: 'mask',
        restore: true,
      },
    ]);
    const { events } = await tested.run(
      { messages: ['Ada is the "quoted"\nname.'], stream: true },
      {
        reply: ({ text: prompt }) =>
          reply(
            thought(...inPieces(prompt, 4)),
            toolCall('mail', { to: ['[NAME_1]', { body: '[NAME_2] and \\[NAME_1\\]' }] }),
          ),
      },
    );
    expect(textOf(events, 'reasoning-delta')).toBe('Ada is the "quoted"\nname.');
    expect(JSON.parse(argumentsOf(events))).toEqual({ to: ['Ada', { body: 'the "quoted"\nname and Ada' }] });
  });

  test.each([
    ['[email_1]', 'ada@example.org'],
    ['[Email 1]', 'ada@example.org'],
    ['[EMAIL-1]', 'ada@example.org'],
    ['\\[EMAIL\\_1\\]', 'ada@example.org'],
    ['[ EMAIL_1 ]', 'ada@example.org'],
    ['EMAIL_1', 'EMAIL_1'],
    ['[EMAIL_2]', '[EMAIL_2]'],
    ['[EMAIL_1', '[EMAIL_1'],
    ['[PHONE_1]', '[PHONE_1]'],
  ])('a model that writes %s gives the client %s', async (written, expected) => {
    const tested = await guarded([pii]);
    const { text: answer } = await tested.run(
      { messages: ['ada@example.org'], stream: true },
      { reply: reply(text(...inPieces(`<${written}>`, 1))) },
    );
    expect(answer).toBe(`<${expected}>`);
  });

  test('has the same placeholders in all calls of a conversation, in all of its parts', async () => {
    const tested = await guarded([pii]);
    const message = (role: Message['role'], ...content: Message['content']): Message => ({ role, content });
    const messages: Message[] = [
      message('user', { type: 'text', text: 'I am ada@example.org' }),
      message(
        'assistant',
        { type: 'reasoning', text: 'ada@example.org?' },
        {
          type: 'tool-call',
          id: 'call_1',
          name: 'find',
          input: '{"to":"bob@example.org","card":4111111111111111}',
        },
      ),
      message('user', {
        type: 'tool-result',
        id: 'call_1',
        content: [{ type: 'text', text: 'eve@example.org, bob@example.org' }],
      }),
    ];
    const seen: string[] = [];
    for (const length of [1, 3]) {
      const { sent } = await tested.run({
        messages: messages.slice(0, length),
        system: 'Ask root@example.org',
        format: 'messages',
      });
      seen.push(JSON.stringify([sent[0]?.request.system, sent[0]?.request.messages]));
    }
    expect(seen.join('')).not.toMatch(/@example|4111/);
    expect(seen[1]).toContain('I am [EMAIL_2]');
    expect(seen[0]).toContain('I am [EMAIL_2]');
    expect(seen[1]).toContain(String.raw`{\"to\":\"[EMAIL_3]\",\"card\":\"[CARD_1]\"}`);
    expect(seen[1]).toContain('[EMAIL_4], [EMAIL_3]');
  });

  test('never takes a placeholder of the client for one of its own', async () => {
    const tested = await guarded([pii]);
    const { sent, text: answer } = await tested.run(
      { messages: ['Print [email 1] and \\[EMAIL_2\\]. I am ada@example.org.'] },
      { reply: ({ text: prompt }) => `${prompt} [EMAIL_1] [EMAIL_2] [EMAIL_3]` },
    );
    expect(sent[0]?.text).toBe('Print [email 1] and \\[EMAIL_2\\]. I am [EMAIL_3].');
    expect(answer).toBe(
      'Print [email 1] and \\[EMAIL_2\\]. I am ada@example.org. [EMAIL_1] [EMAIL_2] ada@example.org',
    );
  });

  test('never takes a placeholder of a turn that the provider keeps for one of this call', async () => {
    const tested = await guarded([pii]);
    const { text: answer } = await tested.run(
      { messages: ['bob@example.org'], format: 'responses' },
      { reply: 'Your first address was [EMAIL_1].' },
    );
    expect(answer).toBe('Your first address was [EMAIL_1].');
  });

  test('leaves values in signed reasoning that stand nowhere else, because the signature vouches for them', async () => {
    const tested = await guarded([pii]);
    const messages: Message[] = [
      { role: 'user', content: [{ type: 'text', text: 'ada@example.org' }] },
      {
        role: 'assistant',
        content: [
          {
            type: 'reasoning',
            text: 'ada@example.org or made-up@example.org',
            proof: { format: 'messages', kind: 'signature', value: 'c2ln' },
          },
          { type: 'text', text: 'Hm.' },
        ],
      },
      { role: 'user', content: [{ type: 'text', text: 'Go on.' }] },
    ];
    const { sent } = await tested.run({ messages, format: 'messages' });
    expect(JSON.stringify(sent[0]?.request.messages)).toContain('[EMAIL_1] or made-up@example.org');
  });
});

describe('a stream', () => {
  const values = [
    'ada@example.org',
    '4111 1111 1111 1111',
    'DE89 3704 0044 0532 0130 00',
    '+49 170 1234567',
    `ghp_${'a1B2'.repeat(9)}`,
  ];

  test('shows no value of a masked response, and restores exactly, wherever it is cut', async () => {
    const tested = await guarded([pii]);
    const secret = fc.constantFrom(...values);
    const filler = fc.constantFrom(' ', 'Hello ', '.', ', and ', '😀 ', '\n', '[', 'a ', '12 ', '[EMAIL_9] ');
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(filler, secret, filler), { minLength: 1, maxLength: 4 }),
        fc.array(fc.tuple(filler, fc.constantFrom('own@model.example', '5555 5555 5555 4444'), filler), {
          maxLength: 3,
        }),
        fc.array(fc.nat(400), { maxLength: 30 }),
        fc.constantFrom(...formats),
        async (prompt, own, cuts, format) => {
          // Digits that touch a number make another number of it.
          const apart = (parts: readonly (readonly string[])[]): string =>
            parts.map(([before = '', value = '', after = '']) => `${before}(${value})${after}`).join('');
          const question = apart(prompt).trim();
          const made = apart(own);
          let echo = '';
          const outcome = await tested.run(
            { messages: [`Q ${question}`], format, stream: true },
            {
              reply: ({ text: sent }) => {
                echo = `${sent}|${made}|`;
                const at = [
                  0,
                  ...cuts.filter((cut) => cut < echo.length).toSorted((a, b) => a - b),
                  echo.length,
                ];
                return reply(text(...at.slice(1).map((end, index) => echo.slice(at[index], end))));
              },
            },
          );
          for (const value of values) expect(echo).not.toContain(value);
          const [first, second = ''] = outcome.text.split('|');
          expect(first).toBe(`Q ${question}`);
          expect(second).not.toMatch(/own@model|5555 5555/);
          for (const hidden of ['own@model.example', '5555 5555 5555 4444'])
            expect(outcome.wire).not.toContain(hidden);
        },
      ),
      { numRuns: tries(1500) },
    );
  });

  test('keeps its blocks and choices apart', async () => {
    const tested = await guarded([pii]);
    const one = { block: 0, choice: 0 };
    const other = { block: 1, choice: 1 };
    const { events } = await tested.run(
      { messages: ['ada@example.org bob@example.org'], stream: true },
      {
        reply: [
          { type: 'head', id: 'r', model: 'm' },
          { type: 'text-start', ...one },
          { type: 'text-start', ...other },
          { type: 'text-delta', ...one, text: '[EMA' },
          { type: 'text-delta', ...other, text: '[EMAIL_' },
          { type: 'text-delta', ...one, text: 'IL_1]' },
          { type: 'text-delta', ...other, text: '2]' },
          { type: 'text-end', ...one },
          { type: 'text-end', ...other },
          { type: 'finish', choice: 0, reason: 'stop' },
          { type: 'finish', choice: 1, reason: 'stop' },
        ],
      },
    );
    const of = (choice: number): string =>
      events
        .map((event) => (event.type === 'text-delta' && event.choice === choice ? event.text : ''))
        .join('');
    expect([of(0), of(1)]).toEqual(['ada@example.org', 'bob@example.org']);
  });

  test('is held back by a word, not by the longest entity', async () => {
    const tested = await guarded([{ ...pii, on: 'response', restore: false }]);
    const { events } = await tested.run(
      { messages: ['Hi'], stream: true },
      { reply: reply(text('Hello wor', 'ld, how', ' are you', '?')) },
    );
    expect(events.flatMap((event) => (event.type === 'text-delta' ? [event.text] : []))).toEqual([
      'Hello ',
      'world, ',
      'how are ',
      'you?',
    ]);
  });

  test.each(formats)('ends with the error of its format at what must be refused: %s', async (format) => {
    const tested = await guarded([{ ...refusing, on: 'response' }]);
    const streamed = await tested.run(
      { messages: ['Hi'], format, stream: true },
      { reply: reply(text('Sure: ', '4111 1111 ', '1111 1111', ' is it.')) },
    );
    expect(streamed.text).toBe('Sure: ');
    expect(streamed.wire).not.toContain('4111');
    expect(streamed.error).toMatchObject({ code: 'content_policy_violation', status: 400 });
    expect(streamed.wire).toContain('refused by the check \\"no-cards\\"');
    const whole = await tested.run({ messages: ['Hi'], format }, { reply: 'Sure: 4111 1111 1111 1111' });
    expect([whole.status, JSON.stringify(whole.body)]).toEqual([400, expect.stringContaining('no-cards')]);
  });

  test.each(['4111 1111 1111 1111', '[4111 1111 1111 1111]', '{"a": 4111 1111 1111 1111}'])(
    'masks a number in arguments that are no JSON: %s',
    async (input) => {
      const tested = await guarded([{ ...pii, restore: false }]);
      const { events } = await tested.run(
        { messages: ['Hi'], stream: true },
        {
          reply: [
            { type: 'head', id: 'r', model: 'm' },
            { type: 'tool-start', block: 0, choice: 0, id: 'call_1', name: 'f' },
            ...[...input].map((piece): GatewayEvent => ({
              type: 'tool-delta',
              block: 0,
              choice: 0,
              input: piece,
            })),
            { type: 'tool-end', block: 0, choice: 0 },
            { type: 'finish', choice: 0, reason: 'tool-calls' },
          ],
        },
      );
      expect(argumentsOf(events)).toBe(input.replace('4111 1111 1111 1111', '[CARD_1]'));
    },
  );

  test('masks what hides in escapes of arguments', async () => {
    const tested = await guarded([{ ...pii, restore: false }]);
    const input = String.raw`{"a":"ada\u0040example.org","n":4111111111111111,"ok":12}`;
    const { events } = await tested.run(
      { messages: ['Hi'], stream: true },
      {
        reply: [
          { type: 'head', id: 'r', model: 'm' },
          { type: 'tool-start', block: 0, choice: 0, id: 'call_1', name: 'f' },
          ...[...input].map((piece): GatewayEvent => ({
            type: 'tool-delta',
            block: 0,
            choice: 0,
            input: piece,
          })),
          { type: 'tool-end', block: 0, choice: 0 },
          { type: 'finish', choice: 0, reason: 'tool-calls' },
        ],
      },
    );
    expect(JSON.parse(argumentsOf(events))).toEqual({ a: '[EMAIL_1]', n: '[CARD_1]', ok: 12 });
  });
});

describe('checks', () => {
  test.each(formats)(
    'refuse a request in the words of its format, and no provider is asked: %s',
    async (format) => {
      const tested = await guarded([{ ...refusing, message: 'No cards here.' }]);
      const { status, body, sent } = await tested.run({ messages: ['4111 1111 1111 1111'], format });
      expect([status, sent]).toEqual([400, []]);
      expect(JSON.stringify(body)).toContain('No cards here.');
      expect(JSON.stringify([body, tested.lines])).not.toContain('4111');
      expect((await tested.run({ messages: ['4111'], format })).status).toBe(200);
    },
  );

  test('tag a call in a header, under a key and in the log, without what they found', async () => {
    const tested = await guarded([
      { name: 'mail', kind: 'entities', entities: ['email'], action: 'tag', on: 'request' },
      { name: 'project', kind: 'words', words: ['moonshine'], action: 'tag' },
    ]);
    const outcome = await tested.run('moonshine for ada@example.org');
    expect(outcome.headers['x-sluice-guard']).toBe('mail, project');
    expect(outcome.left(guardTags)).toEqual(['mail', 'project']);
    expect(outcome.sent[0]?.text).toBe('moonshine for ada@example.org');
    const answered = await tested.run(
      { messages: ['Hi'], stream: true },
      { reply: reply(text('moon', 'shine')) },
    );
    expect(answered.left(guardTags)).toEqual(['project']);
    expect(answered.text).toBe('moonshine');
    expect(tested.lines.filter(({ msg }) => msg === 'guard: tagged')).toHaveLength(3);
    expect(JSON.stringify(tested.lines)).not.toMatch(/moonshine|ada@/);
  });

  test('alert at most once in a while, and count what they leave out', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    onTestFinished(() => void vi.useRealTimers());
    const tested = await guarded([
      { name: 'mail', kind: 'entities', entities: ['email'], action: 'alert', on: 'request' },
    ]);
    for (const _ of [1, 2, 3]) await tested.run('ada@example.org');
    vi.setSystemTime(Date.now() + 60_000);
    await tested.run('ada@example.org');
    const alerts = tested.lines.filter(({ msg }) => msg === 'guard: alert');
    const alert = { check: 'mail', side: 'request', reasons: ['EMAIL'] };
    expect(alerts).toMatchObject([
      { ...alert, unreported: 0 },
      { ...alert, unreported: 2 },
    ]);
  });

  test('find what another check matches less of', async () => {
    const tested = await guarded([
      { name: 'long', kind: 'patterns', patterns: [{ pattern: String.raw`bomb \w+` }], action: 'mask' },
      { name: 'short', kind: 'words', words: ['bomb'], action: 'refuse' },
    ]);
    expect((await tested.run('a bomb shelter')).status).toBe(400);
  });

  test('hold for the keys and models that they name', async () => {
    const tested = await guarded([
      { ...refusing, keys: ['team-a-*', 'key_b'] },
      { name: 'words', kind: 'words', words: ['moonshine'], action: 'refuse', models: ['small-*'] },
    ]);
    const status = async (message: string, key?: object, model = 'large'): Promise<number> =>
      (await tested.run({ messages: [message], model, ...(key === undefined ? {} : { key }) })).status;
    const card = '4111111111111111';
    expect(await status(card, { id: 'key_a', name: 'team-a-web' })).toBe(400);
    expect(await status(card, { id: 'key_b', name: 'other' })).toBe(400);
    expect(await status(card, { id: 'key_c', name: 'team-b-web' })).toBe(200);
    expect(await status(card)).toBe(200);
    expect(await status('moonshine')).toBe(200);
    expect(await status('moonshine', undefined, 'small-1')).toBe(400);
  });

  test('see documents in plain text, names of files, and what only one format knows', async () => {
    const tested = await guarded([pii]);
    const body = {
      model: 'm',
      max_tokens: 10,
      messages: [
        {
          role: 'user',
          content: [
            {
              type: 'document',
              title: 'ada@example.org',
              source: { type: 'text', media_type: 'text/plain', data: 'By ada@example.org' },
            },
            {
              type: 'search_result',
              source: 'https://example.org',
              title: 'T',
              content: [{ type: 'text', text: 'eve@example.org' }],
            },
          ],
        },
      ],
    };
    const { sent } = await tested.run({ format: 'messages', body });
    const seen = JSON.stringify(sent[0]?.request.messages);
    expect(seen).not.toMatch(/(?:ada|eve)@/);
    expect(seen).toContain(Buffer.from('By [EMAIL_1]').toString('base64'));
  });

  test.each([
    ['embed', 'embeddings', { model: 'm', input: ['ada@example.org', 'plain'] }],
    ['moderate', 'moderations', { model: 'm', input: 'ada@example.org' }],
    ['generate-image', 'images', { model: 'm', prompt: 'A letter to ada@example.org' }],
    ['speak', 'audio', { model: 'm', input: 'ada@example.org', voice: 'alloy' }],
    [
      'rerank',
      'rerank',
      { model: 'm', query: 'ada@example.org', documents: ['ada@example.org', { text: 'ada@example.org' }] },
    ],
    ['count-tokens', 'messages', { model: 'm', messages: [{ role: 'user', content: 'ada@example.org' }] }],
  ] as const)('mask the input of %s', async (operation, format, body) => {
    const tested = await guarded([pii]);
    const { sent } = await tested.run({ operation, format, body: body as never });
    expect(sent).toHaveLength(1);
    expect(JSON.stringify([sent[0]?.call.request, sent[0]?.call.body])).not.toContain('ada@');
    expect(JSON.stringify(sent[0]?.call.request)).toContain('[EMAIL_1]');
  });

  test.each([
    [
      'rerank',
      'rerank',
      { model: 'm', query: 'q', documents: [{ customer_id: 'ada@example.org', text: 'Hi' }] },
    ],
    ['rerank', 'rerank', { model: 'm', query: 'https://example.org/?to=ada@example.org', documents: ['d'] }],
    ['rerank', 'rerank', { model: 'm', query: 'q', documents: ['data:text/plain,ada@example.org'] }],
    ['rerank', 'rerank', { model: 'm', query: 'q', documents: ['data:image/png;base64,AA ada@example.org'] }],
    [
      'moderate',
      'moderations',
      {
        model: 'm',
        input: [{ type: 'image_url', image_url: { url: 'https://example.org/ada@example.org' } }],
      },
    ],
  ] as const)('mask ids and addresses of %s, too', async (operation, format, body) => {
    const tested = await guarded([pii]);
    const { sent } = await tested.run({ operation, format, body: body as never });
    expect(sent).toHaveLength(1);
    expect(JSON.stringify([sent[0]?.call.request, sent[0]?.call.body])).not.toContain('ada@');
    expect(JSON.stringify(sent[0]?.call.request)).toContain('[EMAIL_1]');
  });

  test.each(formats)('mask what definitions of tools and of the answer hold: %s', async (format) => {
    const tested = await guarded([pii]);
    const schema = {
      type: 'object',
      properties: {
        to: { type: 'string', description: 'Such as ada@example.org', enum: ['ada@example.org', 'email'] },
        default: { type: 'string', default: 'eve@example.org' },
      },
    };
    const description = 'Writes to ada@example.org';
    const user = 'bob@example.org';
    const bodies = {
      'chat-completions': {
        model: 'm',
        messages: [{ role: 'user', content: user }],
        tools: [{ type: 'function', function: { name: 'mail', description, parameters: schema } }],
        response_format: { type: 'json_schema', json_schema: { name: 'a', schema } },
      },
      responses: {
        model: 'm',
        input: user,
        tools: [{ type: 'function', name: 'mail', description, parameters: schema }],
        text: { format: { type: 'json_schema', name: 'a', schema } },
      },
      messages: {
        model: 'm',
        max_tokens: 9,
        messages: [{ role: 'user', content: user }],
        tools: [{ name: 'mail', description, input_schema: schema }],
      },
      'generate-content': {
        contents: [{ role: 'user', parts: [{ text: user }] }],
        tools: [{ functionDeclarations: [{ name: 'mail', description, parametersJsonSchema: schema }] }],
        generationConfig: { responseMimeType: 'application/json', responseJsonSchema: schema },
      },
    } as const;
    const outcome = await tested.run(
      { format, body: bodies[format] as never },
      { reply: ({ call: sent }) => /\[EMAIL_\w+\]/.exec(JSON.stringify(sent.body))?.[0] ?? 'none' },
    );
    const [sent] = outcome.sent;
    const all = JSON.stringify([sent?.call.body, sent?.call.request]);
    expect(all).not.toContain('@example.org');
    expect(all).toContain('"type":"string"');
    expect(outcome.text).toMatch(/^(?:ada|bob|eve)@example\.org$/);
    const refused = await (
      await guarded([{ ...pii, action: 'refuse', restore: false }])
    ).run({
      format,
      body: bodies[format] as never,
    });
    expect(refused.error?.code).toBe('content_policy_violation');
  });

  test('mask members of documents that have the names of the format, and leave the format as it is', async () => {
    const tested = await guarded([{ name: 'w', kind: 'words', words: ['text', 'm'], action: 'mask' }]);
    const documents = [{ type: 'text', model: 'm', text: 'text' }];
    const { sent } = await tested.run({
      operation: 'rerank',
      format: 'rerank',
      body: { model: 'm', query: 'q', documents },
    });
    expect(sent[0]?.call.body).toMatchObject({
      model: 'm',
      documents: [{ type: '[WORD_1]', model: '[WORD_2]', text: '[WORD_1]' }],
    });
  });

  test('mask a word of the format where the body cannot be changed', async () => {
    const tested = await guarded([{ name: 'w', kind: 'words', words: ['user'], action: 'mask' }]);
    const data = `data:text/plain;base64,${Buffer.from('By user').toString('base64')}`;
    const content = [{ type: 'file', file: { filename: 'a.txt', file_data: data } }];
    const { sent, status } = await tested.run({
      body: { model: 'm', messages: [{ role: 'user', content }] },
    });
    expect(status).toBe(200);
    expect(sent[0]?.request.messages[0]?.role).toBe('user');
    expect(JSON.stringify(sent[0]?.request.messages)).toContain(
      Buffer.from('By [WORD_1]').toString('base64'),
    );
  });

  test('mask a text that is also a word of the format', async () => {
    const tested = await guarded([{ name: 'w', kind: 'words', words: ['user'], action: 'mask' }]);
    const input = [{ role: 'user', content: [{ type: 'input_text', text: 'user' }] }];
    const masked = await tested.run({ format: 'responses', body: { model: 'm', input } });
    expect(masked.sent[0]?.call.body['input']).toMatchObject([
      { role: 'user', content: [{ text: expect.stringMatching(/^\[WORD_\w+\]$/) }] },
    ]);
  });

  test('mask what stands in the body in other words than in the text, and refuse where that cannot be', async () => {
    const tested = await guarded([pii]);
    const data = `data:text/plain;base64,${Buffer.from('By ada@example.org').toString('base64')}`;
    const content = [{ type: 'file', file: { filename: 'a.txt', file_data: data } }];
    const { sent } = await tested.run({ body: { model: 'm', messages: [{ role: 'user', content }] } });
    expect(JSON.stringify(sent[0]?.request.messages)).toContain(
      Buffer.from('By [EMAIL_1]').toString('base64'),
    );
    const input = [{ role: 'user', content: [{ type: 'input_file', filename: 'a.txt', file_data: data }] }];
    const refused = await tested.run({ format: 'responses', body: { model: 'm', input } });
    expect([refused.error?.code, refused.sent]).toEqual(['unsupported_content', []]);
  });

  test('mask arguments that nest without end', async () => {
    const tested = await guarded([pii]);
    const deep = `${'['.repeat(100_000)}"ada@example.org"${']'.repeat(100_000)}`;
    const call = { id: 'call_1', type: 'function', function: { name: 'f', arguments: deep } };
    const messages = [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'call_1', content: 'done' },
    ];
    const { sent, status } = await tested.run({ body: { model: 'm', messages } });
    expect(status).toBe(200);
    expect(JSON.stringify(sent[0]?.request.messages)).toContain('[EMAIL_1]');
    expect(JSON.stringify(sent[0]?.request.messages)).not.toContain('ada@');
  });

  test('mask the body, too, which plugins behind read in place of the turns', async () => {
    const tested = await guarded([pii]);
    const prompts = await tested.run({
      format: 'text-completions',
      body: { model: 'm', prompt: ['I am ada@example.org', 'bob@example.org'], user: 'ada@example.org' },
    });
    expect(prompts.sent[0]?.call.body['prompt']).toEqual(['I am [EMAIL_1]', '[EMAIL_2]']);
    const word: CheckEntry = { name: 'w', kind: 'words', words: ['user', 'text'], action: 'mask' };
    const words = await guarded([word]);
    const { sent } = await words.run({
      format: 'messages',
      body: {
        model: 'm',
        max_tokens: 5,
        messages: [{ role: 'user', content: [{ type: 'text', text: 'user' }] }],
      },
    });
    expect(sent[0]?.call.body['messages']).toEqual([
      { role: 'user', content: [{ type: 'text', text: '[WORD_1]' }] },
    ]);
  });

  test('refuse, or let pass on request, what they cannot look into', async () => {
    const body = { model: 'm', input: [1, 2, 3] };
    const strict = await guarded([pii]);
    const refused = await strict.run({ operation: 'embed', format: 'embeddings', body });
    expect([refused.status, refused.error?.code]).toEqual([400, 'unsupported_content']);
    const lax = await guarded([pii], { uncovered: 'allow' });
    expect((await lax.run({ operation: 'embed', format: 'embeddings', body })).sent).toHaveLength(1);
  });
});

describe('options', () => {
  test.each([
    [{ ...pii, action: 'refuse' }, /"restore", which needs action "mask"/],
    [{ ...pii, on: 'response' }, /needs the request/],
    [
      { name: 'x', kind: 'patterns', patterns: [{ pattern: '(a' }], action: 'mask' },
      /"x" is not usable: The pattern has a group without its end/,
    ],
    [{ name: 'x', kind: 'moderation', action: 'mask' }, /cannot mask/],
    [{ name: 'x', kind: 'webhook', url: 'http://127.0.0.1:1', action: 'mask' }, /set "on" to "request"/],
    [{ name: 'x', kind: 'json-schema', action: 'refuse' }, /set "on" to "response"/],
    [
      {
        name: 'x',
        kind: 'presidio',
        url: 'http://127.0.0.1:1',
        action: 'mask',
        on: 'request',
        parallel: true,
      },
      /cannot run in parallel/,
    ],
  ] as const)('that contradict each other are refused at the start: %j', async (check, message) => {
    await expect(guarded([check as unknown as CheckEntry])).rejects.toThrow(message);
  });

  test('patterns that are too large together are refused at the start', async () => {
    const check: CheckEntry = {
      name: 'x',
      kind: 'patterns',
      patterns: [{ pattern: '(?:a{1000}){1000}' }],
      action: 'refuse',
    };
    await expect(guarded([check])).rejects.toThrow(/too large/);
  });

  test('two checks need two names', async () => {
    await expect(guarded([pii, pii])).rejects.toThrow(/two checks have the name "pii"/);
  });
});

test('letters in placeholders differ from gateway to gateway, and stay the same in one', async () => {
  const lettersOf = async (tested: TestedPlugins): Promise<string | undefined> =>
    (await tested.run({ messages: ['ada@example.org'], format: 'responses' })).sent[0]?.text;
  const one = await guarded([pii]);
  const other = await guarded([pii]);
  expect(await lettersOf(one)).toMatch(/^\[EMAIL_\w{6}\]$/);
  expect(await lettersOf(one)).toBe(await lettersOf(one));
  expect(await lettersOf(one)).not.toBe(await lettersOf(other));
});

import { describe, expect, it, vi } from 'vitest';
import type { Block, Message, Tool } from '../../core/model/chat.ts';
import type { GatewayEvent } from '../../core/model/event.ts';
import { testCall } from '../support/call.ts';
import { openDemo, readDemo, user, type DemoReply } from './_demo.ts';

const getTime: Tool = {
  type: 'function',
  name: 'get_time',
  schema: {
    type: 'object',
    properties: { zone: { type: 'string', enum: ['UTC', 'CET'] }, short: { type: 'boolean' } },
    required: ['zone'],
  },
};
const getWeather: Tool = {
  type: 'function',
  name: 'get_weather',
  schema: { type: 'object', properties: { city: { type: 'string' } } },
};
const tools = [getTime, getWeather];

/** The answer as a turn of the conversation, as a client would send it back. */
function assistantTurn(reply: DemoReply): Message {
  const content: Block[] = [];
  const proved = reply.events.filter(
    (event) => event.type === 'reasoning-end' || event.type === 'tool-start',
  );
  const reasoned = reply.events.find((event) => event.type === 'reasoning-end');
  if (reasoned !== undefined)
    content.push({
      type: 'reasoning',
      text: reply.reasoning,
      ...(reasoned.proof && { proof: reasoned.proof }),
    });
  if (reply.text !== '') content.push({ type: 'text', text: reply.text });
  for (const call of reply.calls) {
    const start = proved.find((event) => event.type === 'tool-start' && event.id === call.id);
    content.push({ type: 'tool-call', ...call, ...(start?.proof && { proof: start.proof }) });
  }
  return { role: 'assistant', content };
}

function results(reply: DemoReply, text: string, failed = false): Message {
  return {
    role: 'user',
    content: reply.calls.map(({ id }) => ({
      type: 'tool-result',
      id,
      content: [{ type: 'text', text }],
      ...(failed ? { failed } : {}),
    })),
  };
}

const types = (events: readonly GatewayEvent[]): string[] => [...new Set(events.map(({ type }) => type))];

/** Which events of an answer carry proofs, and of which format. */
async function proofs(format: string, text: string): Promise<unknown[]> {
  const { events } = await readDemo({ format, text, tools, model: 'demo-thinking' });
  return events.flatMap((event) => ('proof' in event ? [[event.type, event.proof?.format]] : []));
}

/** Returns the image or audio of the demo. */
async function media(text: string, modalities: readonly string[] = []): Promise<unknown[]> {
  const { events } = await readDemo({ text, settings: { modalities } });
  return events.flatMap((event) => (event.type === 'media-start' ? [event.media] : []));
}

/** Returns the arrival times of the pieces of a reply, in milliseconds of a fake clock. */
async function arrivals(text: string): Promise<number[]> {
  const upstream = await openDemo({ text });
  vi.useFakeTimers({ toFake: ['setTimeout', 'performance'] });
  try {
    const began = performance.now();
    const times: number[] = [];
    const state = { over: false };
    upstream.bytes.subscribe({
      next: () => void times.push(performance.now() - began),
      complete: () => (state.over = true),
    });
    while (!state.over) await vi.advanceTimersByTimeAsync(1);
    return times;
  } finally {
    vi.useRealTimers();
  }
}

/** A piece of a turn as a client without reasoning would send it back. */
function forgetful(block: Block): Block | undefined {
  if (block.type === 'reasoning') return undefined;
  if (block.type !== 'tool-call') return block;
  const { proof: _, ...bare } = block;
  return bare;
}

/** A piece of a turn with the first character of its proof changed. */
function altered(block: Block): Block {
  if (!('proof' in block) || block.proof === undefined) return block;
  const value = block.proof.value.replace(/^./, (first) => (first === 'A' ? 'B' : 'A'));
  return { ...block, proof: { ...block.proof, value } };
}

/** Answers a tool call of a thinking turn that came back, piece by piece, as `change` left it. */
async function again(
  format: string,
  change: (block: Block) => Block | undefined,
  options = {},
): Promise<DemoReply> {
  const question = user('call get_time');
  const settings = { reasoning: { effort: 'high', show: true } } as const;
  const one = await readDemo({ format, messages: [question], tools, settings });
  const back = assistantTurn(one);
  const content = back.content.map(change).filter((block) => block !== undefined);
  const history = [question, { ...back, content }, results(one, '12:00')];
  return readDemo({ format, messages: history, tools, settings, options });
}

/** An open tool loop whose call carries a proof of somebody else's. */
function foreignCall(proof: { readonly format: string; readonly value: string }): Message[] {
  const call: Block = {
    type: 'tool-call',
    id: 'a',
    name: 'b',
    input: '',
    proof: { kind: 'signature', ...proof },
  };
  return [
    user('x'),
    { role: 'assistant', content: [call] },
    { role: 'user', content: [{ type: 'tool-result', id: 'a', content: [] }] },
  ];
}

describe('what the demo says', () => {
  it('repeats the last words of the user, one token at a time', async () => {
    const reply = await readDemo({
      messages: [
        user('first'),
        { role: 'assistant', content: [{ type: 'text', text: 'x' }] },
        user('héllo wörld 🌍'),
      ],
    });
    expect(reply.text).toBe('You said: héllo wörld 🌍');
    expect(types(reply.events)).toEqual(['head', 'usage', 'text-start', 'text-delta', 'text-end', 'finish']);
    expect(reply.events.filter(({ type }) => type === 'text-delta')).toHaveLength(6);
    expect(reply.finish).toMatchObject([{ choice: 0, reason: 'stop' }]);
    expect(reply.usage).toMatchObject({ output: 6, reasoning: 0, cacheRead: 0, cacheWrite: 0 });
  });

  it('says the same streamed and whole', async () => {
    const [one, other] = [await readDemo({ text: 'a b' }), await readDemo({ text: 'a b', stream: false })];
    // A second may pass between the two.
    const timeless = one.events.map((event) =>
      event.type === 'head' ? { ...event, created: expect.any(Number) } : event,
    );
    expect(other.events).toEqual(timeless);
    expect(other.headers['content-type']).toBe('application/json');
  });

  it('describes what was attached', async () => {
    const data = Buffer.from('not really a picture').toString('base64');
    const content: Block[] = [
      { type: 'text', text: 'what is this?' },
      { type: 'image', source: { kind: 'data', data, mimeType: 'image/png' } },
      { type: 'audio', source: { kind: 'data', data: 'AAAA', mimeType: 'audio/wav' } },
      { type: 'file', source: { kind: 'url', url: 'https://example.com/a.pdf' }, name: 'a.pdf' },
    ];
    const { text } = await readDemo({ messages: [{ role: 'user', content }] });
    expect(text).toBe(
      'You said: what is this?\nI received 3 attachments: image (image/png, 20 bytes, sha256 fe1a4ab1); ' +
        'audio (audio/wav, 3 bytes, sha256 709e80c8); file named a.pdf at https://example.com/a.pdf',
    );
  });

  it('stops at a stop sequence and names it', async () => {
    const reply = await readDemo({ text: 'one STOP two', settings: { stop: ['never', 'STOP'] } });
    expect(reply.text).toBe('You said: one ');
    expect(reply.finish).toMatchObject([{ reason: 'stop-sequence', stopSequence: 'STOP' }]);
  });

  it('cuts at the output limit, reasoning included', async () => {
    const reply = await readDemo({ text: 'a b c d e f', settings: { maxOutput: 5 } });
    expect(reply.text).toBe('You said: a b');
    expect(reply.finish).toMatchObject([{ reason: 'length' }]);
    expect(reply.usage?.output).toBe(5);
    const thinking = await readDemo({
      model: 'demo-thinking',
      settings: { maxOutput: 3 },
      format: 'messages',
    });
    expect(thinking.text).toBe('');
    expect(thinking.reasoning).toBe('The user wrote');
    expect(thinking.events.find(({ type }) => type === 'reasoning-end')).not.toHaveProperty('proof');
    expect(thinking.usage).toMatchObject({ output: 3, reasoning: 3 });
  });

  it('gives several answers', async () => {
    const reply = await readDemo({ settings: { choices: 2 } });
    expect(reply.finish.map(({ choice }) => choice)).toEqual([0, 1]);
    expect(reply.text).toBe('You said: helloYou said: hello\n(choice 2)');
    expect(reply.usage?.output).toBe(4 + 8);
  });

  it('tells log probabilities of each token', async () => {
    const reply = await readDemo({ settings: { logprobs: true, topLogprobs: 2 } });
    const delta = reply.events.find((event) => event.type === 'text-delta');
    expect(delta).toMatchObject({
      text: 'You',
      logprobs: [{ token: 'You', bytes: [89, 111, 117], top: [{ token: 'You' }, { token: 'You1' }] }],
    });
  });

  it('answers in JSON that fits the schema', async () => {
    const schema = {
      type: 'object',
      properties: {
        name: { type: 'string', minLength: 12 },
        size: { type: 'integer', minimum: 3 },
        tags: { type: 'array', items: { $ref: '#/$defs/tag' }, minItems: 2 },
        extra: { type: 'string' },
      },
      required: ['name', 'size', 'tags'],
      $defs: { tag: { anyOf: [{ type: 'null' }, { type: 'string', format: 'date' }] } },
    };
    const { text } = await readDemo({ settings: { responseFormat: { type: 'json-schema', schema } } });
    expect(JSON.parse(text)).toEqual({ name: 'demo name...', size: 3, tags: ['2025-01-01', '2025-01-01'] });
    expect(JSON.parse((await readDemo({ settings: { responseFormat: { type: 'json' } } })).text)).toEqual({
      answer: 'hello',
      model: 'demo',
    });
  });

  it('counts input, and what a prompt cache would have read and written', async () => {
    const first: Message = {
      role: 'user',
      content: [{ type: 'text', text: 'one two three', cache: { ttl: '1h' } }],
    };
    expect((await readDemo({ messages: [first] })).usage).toMatchObject({
      input: 3,
      cacheRead: 0,
      cacheWrite: 3,
      cacheWriteLong: 3,
    });
    const later = [
      first,
      { role: 'assistant', content: [{ type: 'text', text: 'four' }] } as const,
      { role: 'user', content: [{ type: 'text', text: 'five', cache: {} }] } as const,
    ];
    expect((await readDemo({ messages: later })).usage).toMatchObject({
      input: 5,
      cacheRead: 3,
      cacheWrite: 2,
    });
    expect((await readDemo({ text: 'one two' })).usage).toMatchObject({
      input: 2,
      cacheRead: 0,
      cacheWrite: 0,
    });
    const whole = { extra: { messages: { cache_control: { type: 'ephemeral', ttl: '1h' } } } };
    expect((await readDemo({ text: 'one two', ...whole })).usage).toMatchObject({
      cacheWrite: 2,
      cacheWriteLong: 2,
    });
    const keyed = await readDemo({ text: 'one two', settings: { promptCacheKey: 'k' } });
    expect(keyed.usage).toMatchObject({ cacheWrite: 2 });
    const stored = await readDemo({
      text: 'one two',
      extra: { 'generate-content': { cachedContent: 'cachedContents/x' } },
    });
    expect(stored.usage).toMatchObject({ input: 66, cacheRead: 64, cacheWrite: 0 });
  });

  it('counts tokens when that is all that is asked', async () => {
    const { body } = await readDemo({
      text: 'one two three',
      operation: 'count-tokens',
      stream: false,
      format: 'messages',
    });
    expect(JSON.parse(body)).toEqual({ events: [{ type: 'result', value: { tokens: 3 } }] });
  });
});

describe('how the demo calls tools', () => {
  it('calls what the text names, in parallel, with arguments that fit', async () => {
    const reply = await readDemo({ text: 'please call get_weather and get_time.', tools });
    expect(reply.calls.map(({ name, input }) => [name, JSON.parse(input)])).toEqual([
      ['get_weather', { city: 'demo city' }],
      ['get_time', { zone: 'UTC' }],
    ]);
    expect(new Set(reply.calls.map(({ id }) => id)).size).toBe(2);
    expect(reply.finish).toMatchObject([{ reason: 'tool-calls' }]);
    expect(reply.text).toBe('');
  });

  it('calls nothing when nobody asks', async () => {
    expect((await readDemo({ text: 'I recall get_time', tools })).calls).toEqual([]);
    expect((await readDemo({ text: 'call get_time', tools, toolChoice: { type: 'none' } })).calls).toEqual(
      [],
    );
    expect((await readDemo({ text: 'call home', tools })).calls).toEqual([]);
  });

  it.each([
    [{ type: 'required' }, ['get_time']],
    [{ type: 'tool', name: 'get_weather' }, ['get_weather']],
    [{ type: 'allowed', mode: 'required', names: ['get_weather'] }, ['get_weather']],
    [{ type: 'allowed', mode: 'auto', names: ['get_weather'] }, []],
  ] as const)('obeys the tool choice %o', async (toolChoice, names) => {
    expect((await readDemo({ tools, toolChoice })).calls.map(({ name }) => name)).toEqual(names);
  });

  it('goes on after results, one step at a time, and quotes them in the end', async () => {
    const question = user('call get_time and get_time then get_weather');
    const one = await readDemo({ messages: [question], tools });
    expect(one.calls.map(({ name }) => name)).toEqual(['get_time', 'get_time']);
    const two = await readDemo({ messages: [question, assistantTurn(one), results(one, '12:00')], tools });
    expect(two.calls.map(({ name }) => name)).toEqual(['get_weather']);
    const three = await readDemo({
      messages: [
        question,
        assistantTurn(one),
        results(one, '12:00'),
        assistantTurn(two),
        results(two, 'rain', true),
      ],
      tools,
    });
    expect(three.calls).toEqual([]);
    expect(three.text).toBe('get_weather failed: rain');
    expect(one.calls[0]?.id).not.toBe(two.calls[0]?.id);
  });

  it('calls one at a time when parallel calls are off', async () => {
    const question = user('call get_time and get_weather');
    const settings = { parallelTools: false };
    const one = await readDemo({ messages: [question], tools, settings });
    expect(one.calls.map(({ name }) => name)).toEqual(['get_time']);
    const two = await readDemo({
      messages: [question, assistantTurn(one), results(one, '1')],
      tools,
      settings,
    });
    expect(two.calls.map(({ name }) => name)).toEqual(['get_weather']);
  });

  it('writes free text for a tool that takes it', async () => {
    const reply = await readDemo({ text: 'call shell', tools: [{ type: 'custom', name: 'shell' }] });
    expect(reply.calls).toMatchObject([{ name: 'shell', input: 'demo shell' }]);
    expect(reply.events.find(({ type }) => type === 'tool-start')).toMatchObject({ custom: true });
  });

  it('interleaves arguments when told to', async () => {
    const reply = await readDemo({ text: 'call get_time and get_weather !interleave', tools });
    const order = reply.events.flatMap((event) => (event.type === 'tool-delta' ? [event.block] : []));
    expect(order.slice(0, 4)).toEqual([0, 1, 0, 1]);
    expect(reply.calls.map(({ input }) => JSON.parse(input) as unknown)).toEqual([
      { zone: 'UTC' },
      { city: 'demo city' },
    ]);
  });
});

describe('how the demo thinks', () => {
  it.each([
    [{ effort: 'high' }, 'effort high'],
    [{ budget: 2048 }, 'budget 2048'],
    [{ mode: 'adaptive' }, 'mode adaptive'],
    [{ show: true }, 'as I always do'],
  ] as const)('thinks when asked by %o', async (reasoning, words) => {
    const reply = await readDemo({ settings: { reasoning } });
    expect(reply.reasoning).toContain('The user wrote: hello');
    expect(reply.reasoning).toContain(words);
    expect(reply.usage?.reasoning).toBeGreaterThan(5);
  });

  it.each([[{ effort: 'none' }], [{ mode: 'off' }], [{ budget: 0 }]] as const)(
    'does not think when told %o',
    async (reasoning) => {
      const reply = await readDemo({ model: 'demo-thinking', settings: { reasoning } });
      expect(reply.reasoning).toBe('');
      expect(reply.usage?.reasoning).toBe(0);
    },
  );

  it('hides what the client does not want to see, and still counts it', async () => {
    const hidden = await readDemo({ model: 'demo-thinking', settings: { reasoning: { show: false } } });
    expect(types(hidden.events)).not.toContain('reasoning-start');
    expect(hidden.usage?.reasoning).toBeGreaterThan(5);
    const omitted = await readDemo({
      format: 'messages',
      settings: { reasoning: { mode: 'adaptive', display: 'omitted' } },
    });
    expect(omitted.reasoning).toBe('');
    expect(omitted.events.find(({ type }) => type === 'reasoning-end')).toMatchObject({
      proof: { kind: 'signature' },
    });
    const redacted = await readDemo({ text: '!redacted', format: 'messages', model: 'demo-thinking' });
    expect(redacted.events.find(({ type }) => type === 'reasoning-end')).toMatchObject({
      proof: { kind: 'encrypted' },
    });
  });

  it('signs in the style of each format', async () => {
    expect(await proofs('messages', 'call get_time')).toEqual([['reasoning-end', 'messages']]);
    expect(await proofs('generate-content', 'call get_time and get_weather')).toEqual([
      ['tool-start', 'generate-content'],
    ]);
    expect(await proofs('generate-content', 'hello')).toEqual([['text-end', 'generate-content']]);
    expect(await proofs('chat-completions', 'call get_time')).toEqual([]);
  });

  describe.each(['messages', 'generate-content', 'chat-completions'])('in %s', (format) => {
    it('goes on when its own reasoning comes back', async () => {
      const reply = await again(format, (block) => block);
      expect(reply.status).toBe(200);
      expect(reply.text).toBe('get_time returned: 12:00');
    });

    it('refuses what was altered', async () => {
      const reply = await again(format, (block) =>
        block.type === 'reasoning' ? { ...block, text: `${block.text}.` } : block,
      );
      expect(reply.status).toBe(400);
    });

    it('misses what did not come back', async () => {
      expect((await again(format, forgetful, { strict: true })).status).toBe(400);
      expect((await again(format, forgetful)).status).toBe(format === 'chat-completions' ? 200 : 400);
    });
  });

  it.each(['messages', 'generate-content'])(
    'refuses an altered signature, and another account’s, in %s',
    async (format) => {
      const reply = await again(format, altered);
      expect(reply.status).toBe(400);
      expect(reply.body).toContain('invalid signature');
      expect((await again(format, (block) => block, { account: 'another' })).status).toBe(400);
    },
  );

  it('takes Google’s placeholder, and refuses a proof of another format', async () => {
    const google = { format: 'generate-content', value: 'skip_thought_signature_validator' };
    expect((await readDemo({ format: 'generate-content', messages: foreignCall(google) })).status).toBe(200);
    expect((await readDemo({ format: 'messages', messages: foreignCall(google) })).status).toBe(400);
  });

  it('checks text that a client gathered piece by piece', async () => {
    const one = await readDemo({ format: 'generate-content', model: 'demo-thinking', text: 'hi' });
    const proof = one.events.find((event) => event.type === 'text-end')?.proof;
    if (proof === undefined) throw new Error('no proof');
    const half = one.text.length >> 1;
    const content: Block[] = [
      { type: 'text', text: one.text.slice(0, half) },
      { type: 'text', text: one.text.slice(half) },
      { type: 'text', text: '', proof },
    ];
    const reply = await readDemo({
      format: 'generate-content',
      messages: [user('hi'), { role: 'assistant', content }, user('and?')],
    });
    expect(reply.status).toBe(200);
  });
});

describe('how the demo misbehaves', () => {
  it('answers with the status it is told', async () => {
    const reply = await readDemo({ text: 'hi !status=429 retry-after=2' });
    expect(reply.status).toBe(429);
    expect(reply.headers['retry-after']).toBe('2');
    expect((await readDemo({ model: 'demo!status=503' })).status).toBe(503);
    expect((await readDemo({ model: 'demo!status=503', text: '!status=500' })).status).toBe(500);
    expect((await readDemo({ text: '!status=banana' })).status).toBe(400);
    expect((await readDemo({ text: '!status=200' })).status).toBe(400);
    expect((await readDemo({ text: 'wow !important a=b' })).text).toBe('You said: wow !important a=b');
  });

  it('breaks off with an error event', async () => {
    const reply = await readDemo({ text: 'a b c d !error-after=4' });
    expect(reply.events).toHaveLength(5);
    expect(reply.events.at(-1)).toEqual({ error: 'The demo is overloaded, as you asked.' });
    expect(reply.body).not.toContain('[END]');
    expect((await readDemo({ text: '!200-error' })).events).toEqual([
      { error: 'The demo is overloaded, as you asked.' },
    ]);
    const whole = await readDemo({ text: '!200-error', stream: false });
    expect([whole.status, whole.body]).toEqual([
      200,
      '{"error":{"message":"The demo is overloaded, as you asked."}}',
    ]);
  });

  it('is cut in the middle of a frame, or ends without saying so', async () => {
    const cut = await readDemo({ text: '!cut-after=3' });
    expect(cut.error).toMatchObject({ code: 'upstream_cut', origin: 'upstream' });
    expect(cut.body.endsWith('\n\n')).toBe(false);
    const ended = await readDemo({ text: '!end-after=3' });
    expect(ended).not.toHaveProperty('error');
    expect(ended.events).toHaveLength(3);
    expect((await readDemo({ text: '!cut-after=1', stream: false })).error).toMatchObject({
      code: 'upstream_cut',
    });
  });

  it('sends what is no answer at all', async () => {
    expect((await readDemo({ text: '!garbage' })).body).toContain('data: {"this is": not JSON\n\n');
    expect((await readDemo({ text: '!garbage', stream: false })).body).toBe('{"this is": not JSON');
    const page = await readDemo({ text: '!html status=502' });
    expect([page.status, page.headers['content-type']]).toEqual([502, 'text/html']);
    expect((await readDemo({ text: '!unknown-event' })).body).toContain('demo_unknown');
    expect((await readDemo({ text: '!whole' })).headers['content-type']).toBe('application/json');
    expect((await readDemo({ text: '!no-usage' })).usage).toBeUndefined();
  });

  it('declines, or ends for the reason it is told', async () => {
    const refused = await readDemo({ text: '!refusal' });
    expect(types(refused.events)).toContain('refusal-delta');
    expect(refused.finish).toMatchObject([{ reason: 'refusal' }]);
    expect((await readDemo({ text: '!content-filter' })).finish).toMatchObject([
      { reason: 'content-filter' },
    ]);
    expect((await readDemo({ text: '!finish=pause' })).finish).toMatchObject([{ reason: 'pause' }]);
  });

  it('cites, draws and speaks', async () => {
    expect((await readDemo({ text: '!cite' })).events.find(({ type }) => type === 'citation')).toMatchObject({
      citation: { url: 'https://example.com/demo' },
    });
    expect(await media('!image !audio')).toEqual(['image', 'audio']);
    expect(await media('draw', ['text', 'image'])).toEqual(['image']);
  });

  it('shows what reached it', async () => {
    const { text } = await readDemo({ text: '!request', settings: { temperature: 0.5 } });
    expect(JSON.parse(text)).toMatchObject({
      format: 'chat-completions',
      path: '/anywhere',
      body: { settings: { temperature: 0.5 } },
    });
  });

  it('takes its time', async () => {
    const started = performance.now();
    await openDemo({ text: '!slow-headers=60', options: { delay: 40 } });
    expect(performance.now() - started).toBeGreaterThan(95);
    const late = await arrivals('!slow-first=50');
    expect(late[0]).toBeGreaterThan(45);
    const times = await arrivals('!silence=50');
    const gaps = times.map((time, index) => time - (times[index - 1] ?? time));
    // Something has been said before it.
    expect(gaps.findIndex((gap) => gap > 40)).toBeGreaterThan(2);
  });

  it('paces its stream', async () => {
    const started = performance.now();
    const reply = await readDemo({ text: 'a b c', options: { pace: 5 } });
    expect(performance.now() - started).toBeGreaterThan(5 * reply.events.length - 5);
  });
});

describe('how the demo sends', () => {
  it('makes replies as long as asked, in spite of the output limit', async () => {
    expect((await readDemo({ text: '!size=100k', settings: { maxOutput: 1 } })).text).toHaveLength(102_400);
    expect((await readDemo({ text: '!size=5' })).text).toHaveLength(5);
    const counted = await readDemo({ text: '!chunks=250' });
    expect(counted.events.filter(({ type }) => type === 'text-delta')).toHaveLength(250);
    expect(counted.text.endsWith(' 249 250')).toBe(true);
    expect((await readDemo({ text: '!size=65m', stream: false })).status).toBe(400);
  });

  it('waits for the gate, however long the reply', async () => {
    const made = testCall();
    const upstream = await openDemo({ text: '!size=200m' }, made);
    let received = 0;
    const subscription = upstream.bytes.subscribe((bytes) => {
      received += bytes.length;
      if (received > 1_000_000 && !made.call.gate.closed) made.call.gate.close();
    });
    const before = process.memoryUsage().rss;
    await expect.poll(() => made.call.gate.closed).toBe(true);
    const held = received;
    expect(held).toBeLessThan(1_100_000);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(received).toBe(held);
    expect(process.memoryUsage().rss - before).toBeLessThan(50 * 1024 * 1024);
    made.call.gate.open();
    await expect.poll(() => received).toBeGreaterThan(held);
    subscription.unsubscribe();
  });

  it('stops at once when nobody listens any more', async () => {
    const upstream = await openDemo({ text: '!size=1000m' });
    let received = 0;
    const subscription = upstream.bytes.subscribe((bytes) => void (received += bytes.length));
    await expect.poll(() => received).toBeGreaterThan(0);
    subscription.unsubscribe();
    const held = received;
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(received).toBe(held);
  });

  it('lets others work while it sends', async () => {
    const upstream = await openDemo({ text: '!size=50m' });
    let turns = 0;
    const timer = setInterval(() => void (turns += 1), 1);
    await new Promise<void>((resolve) => upstream.bytes.subscribe({ complete: resolve }));
    clearInterval(timer);
    expect(turns).toBeGreaterThan(0);
  });

  it('leaves when the call ends before it has answered', async () => {
    const made = testCall();
    const waiting = openDemo({ text: '!slow-headers=60000' }, made);
    setTimeout(() => made.exchange.end(), 10);
    await expect(waiting).rejects.toMatchObject({ code: 'client_closed_request' });
  });

  it('sends nothing before it was subscribed to', async () => {
    const upstream = await openDemo({});
    let isEmitted = false;
    upstream.bytes.subscribe(() => (isEmitted = true));
    expect(isEmitted).toBe(false);
  });
});

import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { chat } from '../../channels/_kit/dialect/mistral-chat.ts';
import mistral from '../../channels/mistral/index.ts';
import { GatewayError } from '../../core/sdk/errors.ts';
import type { ChatRequest } from '../../core/model/chat.ts';
import type { GatewayEvent } from '../../core/model/event.ts';
import { isObject, type JsonObject, type JsonValue } from '../../core/model/json.ts';
import { allFormats, fixturesOf, requestOf } from '../support/fixtures.ts';
import { tries } from '../support/tries.ts';

const formats = await allFormats();
const cases = formats.flatMap(({ name, codecs: { chat: codec } }) =>
  codec === undefined
    ? []
    : fixturesOf(name, 'requests', '.json').map((fixture) => ({ from: name, codec, fixture })),
);
const parts = mistral.spec.setup({ key: 'k' } as never, { keys: ['k'] } as never);

/** Members of a request: those of the official client's `ChatCompletionRequest`, and those of chat completions that are not among them. */
const taken = new Set(
  'model temperature top_p max_tokens stream stop random_seed metadata messages response_format tools tool_choice presence_penalty frequency_penalty n prediction parallel_tool_calls reasoning_effort prompt_mode guardrails prompt_cache_key service_tier safe_prompt'.split(
    ' ',
  ),
);
const refused = new Set(
  'audio function_call functions logit_bias logprobs max_completion_tokens modalities prompt_cache_retention reasoning safety_identifier seed store stream_options thinking top_k top_logprobs user verbosity web_search_options'.split(
    ' ',
  ),
);
const roles: Readonly<Record<string, readonly string[]>> = {
  system: ['role', 'content'],
  user: ['role', 'content'],
  assistant: ['role', 'content', 'tool_calls', 'prefix'],
  tool: ['role', 'content', 'tool_call_id', 'name'],
};
/** Each part by its type, and the member that it must have. */
const chunks: Readonly<Record<string, string>> = {
  text: 'text',
  image_url: 'image_url',
  document_url: 'document_url',
  input_audio: 'input_audio',
  file: 'file_id',
  thinking: 'thinking',
  reference: 'reference_ids',
};

const objects = (list: JsonValue | undefined): readonly JsonObject[] =>
  Array.isArray(list) ? list.filter((one) => isObject(one)) : [];

/** Returns the problems for which Mistral would respond with 400 or 422. */
function problems(body: JsonObject): readonly string[] {
  const found = Object.keys(body).filter((name) => refused.has(name) && !taken.has(name));
  const messages = objects(body['messages']);
  messages.forEach((message, index) => {
    const { role, content } = message;
    const before = messages[index - 1]?.['role'];
    const at = `messages[${index}]`;
    for (const name of Object.keys(message))
      if (roles[String(role)]?.includes(name) !== true) found.push(`${at}.${name}`);
    if ((role === 'user' || role === 'system') && before === 'tool')
      found.push(`${at}: ${role} after results`);
    if (role === 'tool' && !/^[A-Za-z0-9]{9}$/.test(String(message['tool_call_id'])))
      found.push(`${at}.tool_call_id`);
    for (const call of objects(message['tool_calls']))
      if (!/^[A-Za-z0-9]{9}$/.test(String(call['id']))) found.push(`${at}.tool_calls`);
    for (const part of objects(content)) {
      const member = chunks[String(part['type'])];
      if (member === undefined || part[member] === undefined) found.push(`${at}: ${JSON.stringify(part)}`);
      if (part['type'] === 'input_audio' && typeof part['input_audio'] !== 'string')
        found.push(`${at}: a sound that is no string`);
    }
  });
  const last = messages.at(-1);
  if (last?.['role'] === 'assistant' && last['tool_calls'] === undefined && last['prefix'] !== true)
    found.push('a last turn that is no prefix');
  for (const tool of objects(body['tools'])) {
    const called = tool['function'];
    if (tool['type'] === 'function' && (!isObject(called) || !isObject(called['parameters'])))
      found.push(`tools: ${JSON.stringify(tool)}`);
  }
  return found;
}

describe.each(['mistral-small-latest', 'codestral-latest'])('for %s', (model) => {
  test.each(cases)('Mistral takes what becomes of $from, $fixture.name', ({ codec, fixture }) => {
    const { params, body } = requestOf(fixture);
    const request = codec.decodeRequest(body, params) as ChatRequest;
    let encoded;
    try {
      encoded = chat.encodeRequest(request, {
        model,
        stream: request.stream,
        traits: parts.traits?.(model) ?? {},
        headers: {},
        unsupported: 'refuse',
        drop: () => {},
      });
    } catch (error) {
      expect(error).toBeInstanceOf(GatewayError);
      expect((error as GatewayError).param).toBeTruthy();
      return;
    }
    expect(problems(encoded.body)).toEqual([]);
  });
});

/** Summarizes a reply. Joins adjacent events of one kind, because a stream may split them anywhere. */
function summarize(events: readonly GatewayEvent[]): JsonValue {
  const entries: JsonObject[] = [];
  const append = (kind: string, text: string): void => {
    const last = entries.at(-1);
    if (last?.['kind'] === kind) entries[entries.length - 1] = { kind, text: String(last['text']) + text };
    else entries.push({ kind, text });
  };
  for (const event of events) {
    if (event.type === 'text-delta') append('text', event.text);
    if (event.type === 'reasoning-delta') append('reasoning', event.text);
    if (event.type === 'reasoning-end' && event.proof !== undefined)
      entries.push({ kind: 'proof', format: event.proof.format, text: event.proof.value });
    if (event.type === 'citation')
      entries.push({ kind: 'citation', start: event.citation.start ?? -1, end: event.citation.end ?? -1 });
    if (event.type === 'finish') entries.push({ kind: 'finish', text: event.reason });
    if (event.type === 'usage') entries.push({ kind: 'usage', input: event.usage.input });
  }
  return entries;
}

const words = fc.string({ minLength: 1, maxLength: 12 });
const part: fc.Arbitrary<JsonObject> = fc.oneof(
  words.map((text) => ({ type: 'text', text })),
  fc.tuple(words, fc.option(fc.constant('sig'), { nil: undefined })).map(([text, signature]) => ({
    type: 'thinking',
    thinking: [{ type: 'text', text }],
    ...(signature === undefined ? {} : { signature }),
  })),
  fc.constant({ type: 'reference', reference_ids: [0, 'a'] }),
);

/** The part as two that say the same, cut where `at` says. */
function cutIn(one: JsonObject, at: number): readonly JsonObject[] {
  const [inner] = objects(one['thinking']);
  const text = String(one['text'] ?? inner?.['text'] ?? '');
  const position = at % (text.length + 1);
  if (one['type'] === 'reference' || position === 0 || position === text.length) return [one];
  const { signature, ...rest } = one;
  const piece = (some: string): JsonObject =>
    inner === undefined ? { ...rest, text: some } : { ...rest, thinking: [{ type: 'text', text: some }] };
  return [
    piece(text.slice(0, position)),
    { ...piece(text.slice(position)), ...(signature === undefined ? {} : { signature }) },
  ];
}

test('a reply says the same whole and streamed, however its parts are cut and joined', () => {
  const top = { id: 'c', model: 'm', created: 1 };
  const usage = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 };
  fc.assert(
    fc.property(
      fc.array(part, { minLength: 1, maxLength: 8 }),
      fc.array(fc.nat(20), { minLength: 1, maxLength: 8 }),
      fc.array(fc.boolean(), { minLength: 1, maxLength: 8 }),
      (content, cuts, ends) => {
        const choice = { index: 0, finish_reason: 'stop', message: { role: 'assistant', content } };
        const whole = summarize(
          chat.decodeWhole({ ...top, object: 'chat.completion', choices: [choice], usage }, {}),
        );
        const pieces = content.flatMap((one, index) => cutIn(one, cuts[index % cuts.length] ?? 0));
        const groups: JsonObject[][] = [[]];
        pieces.forEach((piece, index) => {
          groups.at(-1)?.push(piece);
          if (ends[index % ends.length] === true) groups.push([]);
        });
        const decoder = chat.decodeStream?.({});
        const frames = [
          ...groups.map((group) => ({
            ...top,
            choices: [{ index: 0, delta: { content: group }, finish_reason: null }],
          })),
          { ...top, choices: [{ index: 0, delta: { content: '' }, finish_reason: 'stop' }], usage },
        ];
        const streamed = frames.flatMap((frame) => [
          ...(decoder?.frame({ data: JSON.stringify(frame) }) ?? []),
        ]);
        expect(summarize([...streamed, ...(decoder?.end() ?? [])])).toEqual(whole);
      },
    ),
    { numRuns: tries(1000) },
  );
});

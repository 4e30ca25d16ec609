import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { GatewayError } from '../../../core/sdk/errors.ts';
import { ResponsesStreamDecoder } from '../../../core/formats/responses/stream-in/index.ts';
import { sealProof } from '../../../core/formats/_shared/proof.ts';
import type { GatewayEvent } from '../../../core/model/event.ts';
import type { JsonObject } from '../../../core/model/json.ts';
import { fixturesOf } from '../../support/fixtures.ts';
import { tries } from '../../support/tries.ts';
import { decode, encode, framesOf, jsonOf, outputOf, whole } from './reply-support.ts';

const fixtures = fixturesOf('responses', 'streams', '.sse');
const fixtureText = (wanted: string): string => fixtures.find(({ name }) => name === wanted)?.text ?? '';
const message = { type: 'message', id: 'msg_1', role: 'assistant', status: 'completed' };
const part = (words: string): JsonObject => ({ type: 'output_text', text: words, annotations: [] });
const created = { type: 'response.created', response: { id: 'resp_1', model: 'up', output: [] } };
const completed = (output: readonly JsonObject[], more: JsonObject = {}): JsonObject => ({
  type: 'response.completed',
  response: { id: 'resp_1', model: 'up', status: 'completed', output, ...more },
});

function plain(events: readonly GatewayEvent[]): object[] {
  return events.map((event) => {
    const { extra: _, ...rest } = event as GatewayEvent & { extra?: unknown };
    return rest;
  });
}

function textOf(events: readonly GatewayEvent[]): string {
  return events.map((event) => (event.type === 'text-delta' ? event.text : '')).join('');
}

function failure(frames: readonly JsonObject[]): GatewayError {
  try {
    decode(frames);
  } catch (error) {
    return error as GatewayError;
  }
  throw new Error('It did not fail.');
}

describe('a stream that is decoded and encoded', () => {
  it.each(fixtures)('$name comes back frame by frame', ({ text }) => {
    const frames = framesOf(text);
    expect(jsonOf(encode(decode(frames)))).toEqual(frames);
  });

  it('keeps what the client was promised, whatever its provider says of itself', () => {
    const frames = framesOf(fixtures[0]?.text ?? '');
    const body = { previous_response_id: 'resp_0', conversation: 'conv_1' };
    const reply = {
      model: 'alias',
      body,
      expanded: { store: false },
      requestId: 'req_1',
      created: 1,
      inputEstimate: 0,
      drop: () => {},
    };
    expect(jsonOf(encode(decode(frames), reply)).at(-1)).toMatchObject({
      response: {
        model: 'alias',
        previous_response_id: 'resp_0',
        conversation: { id: 'conv_1' },
        store: true,
        background: false,
      },
    });
  });
});

describe('what an answer says', () => {
  it('is read as blocks, with the reason of its end and its usage', () => {
    const text = fixtureText('summary-and-text');
    const events = plain(decode(framesOf(text)));
    expect(events).toEqual([
      { type: 'head', id: 'resp_s1', model: 'm', created: 1_760_000_000 },
      { type: 'reasoning-start', block: 0, choice: 0 },
      { type: 'reasoning-delta', block: 0, choice: 0, text: '**Look' },
      { type: 'reasoning-delta', block: 0, choice: 0, text: '** up' },
      { type: 'reasoning-delta', block: 0, choice: 0, text: '\n\n' },
      { type: 'reasoning-delta', block: 0, choice: 0, text: 'Then.' },
      {
        type: 'reasoning-end',
        block: 0,
        choice: 0,
        proof: { format: 'responses', kind: 'encrypted', value: 'gAAAA-1' },
      },
      { type: 'text-start', block: 1, choice: 0 },
      { type: 'text-delta', block: 1, choice: 0, text: 'It is' },
      { type: 'text-delta', block: 1, choice: 0, text: ' 09:30' },
      { type: 'text-delta', block: 1, choice: 0, text: ' 🕤.' },
      { type: 'text-end', block: 1, choice: 0 },
      { type: 'finish', choice: 0, reason: 'stop', raw: 'completed', format: 'responses' },
      expect.objectContaining({
        type: 'usage',
        usage: expect.objectContaining({
          input: 100,
          output: 30,
          cacheRead: 40,
          cacheWrite: 10,
          reasoning: 20,
        }),
      }),
    ]);
  });

  it('names tools of a namespace as other formats know them, and marks free-text calls', () => {
    const text = fixtureText('tool-calls');
    const events = decode(framesOf(text));
    expect(plain(events.filter(({ type }) => type === 'tool-start'))).toMatchObject([
      { id: 'call_1', name: 'get_time' },
      { id: 'call_2', name: 'clock__now' },
      { id: 'call_3', name: 'code__exec', custom: true },
    ]);
    expect(events.find(({ type }) => type === 'finish')).toMatchObject({ reason: 'tool-calls' });
  });

  it('shows calls of client-run tools with their action as arguments', () => {
    const text = fixtureText('client-tools');
    const events = plain(decode(framesOf(text)));
    expect(events).toContainEqual({
      type: 'tool-delta',
      block: 0,
      choice: 0,
      input: '{"type":"exec","command":["ls"],"env":{}}',
    });
    expect(events).toContainEqual({
      type: 'tool-start',
      block: 1,
      choice: 0,
      id: 'call_2',
      name: 'apply_patch',
    });
  });

  it('tells the parts of a summary apart, and joins those of the reasoning itself', () => {
    const item = {
      type: 'reasoning',
      id: 'rs_1',
      summary: ['One.', 'Two.'].map((words) => ({ type: 'summary_text', text: words })),
      content: ['Let me', ' see.'].map((words) => ({ type: 'reasoning_text', text: words })),
    };
    const events = decode([created, completed([item])]);
    const reasoning = events.map((event) => (event.type === 'reasoning-delta' ? event.text : '')).join('');
    expect(reasoning).toBe('One.\n\nTwo.\n\nLet me see.');
  });

  it('opens a proof of another format that was sealed on its way', () => {
    const proof = { format: 'messages', kind: 'signature', value: 'sig' } as const;
    const item = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: sealProof(proof) };
    const events = decode([created, completed([item])]);
    expect(events).toContainEqual(expect.objectContaining({ type: 'reasoning-end', proof }));
  });

  it('reads the probabilities of tokens', () => {
    const logprobs = [{ token: 'Hi', logprob: -0.5, top_logprobs: [{ token: 'Hi', logprob: -0.5 }] }];
    const delta = { item_id: 'msg_1', output_index: 0, content_index: 0, delta: 'Hi', logprobs };
    const events = decode([
      created,
      { type: 'response.output_text.delta', ...delta },
      completed([{ ...message, content: [{ ...part('Hi'), logprobs }] }]),
    ]);
    expect(events.filter((event) => event.type === 'text-delta')).toMatchObject([
      { text: 'Hi', logprobs: [{ token: 'Hi', logprob: -0.5, top: [{ token: 'Hi', logprob: -0.5 }] }] },
    ]);
  });
});

describe('a stream that leaves something out', () => {
  const item = { ...message, content: [part('Hello.')] };
  const added = { type: 'response.output_item.added', output_index: 0, item: { ...message, content: [] } };
  const inPart = { item_id: 'msg_1', output_index: 0, content_index: 0 };
  const delta = (words: string): JsonObject => ({
    type: 'response.output_text.delta',
    ...inPart,
    delta: words,
  });
  const done = { type: 'response.output_item.done', output_index: 0, item };

  it.each([
    ['its beginning', [added, delta('Hello.'), done, completed([item])]],
    ['the addition of the item', [created, delta('Hello.'), done, completed([item])]],
    ['all but finished items', [created, done, completed([item])]],
    ['all but the last event', [completed([item])]],
    ['the end of the item', [created, added, delta('Hello.'), completed([item])]],
    ['the items of the last event', [created, added, delta('Hello.'), completed([])]],
    ['some pieces', [created, added, delta('Hel'), done, completed([item])]],
    [
      'the last pieces, but for the whole text',
      [
        created,
        added,
        delta('Hel'),
        { type: 'response.output_text.done', ...inPart, text: 'Hello.' },
        completed([]),
      ],
    ],
    [
      'where a piece belongs',
      [created, added, { type: 'response.output_text.delta', delta: 'Hello.' }, done, completed([item])],
    ],
    [
      'ids',
      [created, { ...done, item: { ...item, id: undefined } }, completed([{ ...item, id: undefined }])],
    ],
    [
      'nothing, and says it under other ids at the end',
      [created, added, delta('Hello.'), done, completed([{ ...item, id: 'msg_other' }])],
    ],
  ])('%s: it is read once', (_, frames) => {
    const events = decode(frames as JsonObject[]);
    expect(textOf(events)).toBe('Hello.');
    expect(events.filter(({ type }) => type === 'head')).toHaveLength(1);
    const starts = events.filter(({ type }) => type === 'text-start');
    expect(starts).toHaveLength(1);
    expect(events.filter(({ type }) => type === 'text-end')).toHaveLength(1);
  });

  it('sources that no event told are read from the finished part', () => {
    const annotation = {
      type: 'url_citation',
      url: 'https://a.example',
      title: 'A',
      start_index: 0,
      end_index: 2,
    };
    const cited = { ...message, content: [{ ...part('Hi'), annotations: [annotation] }] };
    const events = decode([created, added, delta('Hi'), { ...done, item: cited }, completed([cited])]);
    expect(events.filter((event) => event.type === 'citation')).toMatchObject([
      { citation: { url: 'https://a.example', title: 'A', start: 0, end: 2 } },
    ]);
  });

  it('a call that comes only finished has its arguments', () => {
    const call = { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'f', arguments: '{"x":1}' };
    const events = decode([created, completed([call])]);
    expect(plain(events)).toContainEqual({ type: 'tool-delta', block: 0, choice: 0, input: '{"x":1}' });
  });

  it('a whole response in place of events is read, too', () => {
    const { response } = completed([item]);
    expect(textOf(decode([{ ...(response as JsonObject), object: 'response' }]))).toBe('Hello.');
  });
});

describe('what breaks off', () => {
  it('without a last event is an upstream that was cut', () => {
    expect(failure([created])).toMatchObject({ code: 'upstream_cut', origin: 'upstream' });
  });

  it.each([
    [
      'a flat error',
      { type: 'error', code: 'rate_limit_exceeded', message: 'Slow down.', param: null },
      'rate_limit_exceeded',
      'Slow down.',
    ],
    [
      'a nested error',
      { type: 'error', error: { type: 'server_error', code: 'server_is_overloaded', message: 'Busy.' } },
      'server_is_overloaded',
      'Busy.',
    ],
    [
      'a failed response',
      {
        type: 'response.failed',
        response: { status: 'failed', error: { code: 'server_error', message: 'Oh no.' } },
      },
      'upstream_error',
      'Oh no.',
    ],
    [
      'a failed response under another name',
      completed([], { status: 'failed', error: { code: 'server_error', message: 'Oh no.' } }),
      'upstream_error',
      'Oh no.',
    ],
    [
      'an error without a type',
      { error: { message: 'No.', code: 'context_length_exceeded' } },
      'context_length_exceeded',
      'No.',
    ],
  ])('with %s is an error of the upstream', (_, frame, code, sentence) => {
    expect(failure([created, frame])).toMatchObject({ code, message: sentence, origin: 'upstream' });
  });

  it('with something that is no JSON is an error of the upstream', () => {
    expect(() => new ResponsesStreamDecoder().frame({ data: '{"type":' })).toThrow(
      expect.objectContaining({ code: 'upstream_error', origin: 'upstream' }),
    );
  });

  it('says why an answer is incomplete', () => {
    const incomplete = (reason: string): JsonObject => ({
      type: 'response.incomplete',
      response: { status: 'incomplete', incomplete_details: { reason }, output: [] },
    });
    const reasons = ['max_output_tokens', 'content_filter', 'steered'].map((reason) =>
      decode([created, incomplete(reason)]).find(({ type }) => type === 'finish'),
    );
    expect(reasons).toMatchObject([{ reason: 'length' }, { reason: 'content-filter' }, { reason: 'other' }]);
  });

  it('does not go on after its end', () => {
    const events = decode([created, completed([]), { type: 'response.output_text.delta', delta: 'more' }]);
    expect(events.at(-1)?.type).toBe('finish');
  });

  it('is refused when it opens more items than anybody could mean', () => {
    const item = { type: 'web_search_call' };
    const frames = Array.from({ length: 1025 }, (_, index) => ({
      type: 'response.output_item.added',
      output_index: index,
      item,
    }));
    expect(failure([created, ...frames])).toMatchObject({ code: 'upstream_error' });
  });
});

describe('items that are begun inside each other', () => {
  type Kind = 'message' | 'function' | 'shell' | 'hosted shell' | 'search';

  /** An item as it is finished, and its events between the first and the last. */
  function itemOf(
    kind: Kind,
    index: number,
  ): { readonly done: JsonObject; readonly inside: readonly JsonObject[] } {
    const id = `item_${index}`;
    const at = { output_index: index, item_id: id };
    const call = { id, call_id: `call_${index}`, status: 'completed' };
    const action = { commands: [`ls ${index}`] };
    switch (kind) {
      case 'message': {
        const parts = [part(`${index}a`), part(`${index}b`)];
        const inside = parts.flatMap(({ text }, content_index) => [
          { type: 'response.content_part.added', ...at, content_index, part: part('') },
          { type: 'response.output_text.delta', ...at, content_index, delta: text },
          { type: 'response.output_text.done', ...at, content_index, text },
          { type: 'response.content_part.done', ...at, content_index, part: part(String(text)) },
        ]);
        return { done: { ...message, id, content: parts }, inside };
      }
      case 'function':
        return {
          done: { type: 'function_call', ...call, name: 'f', arguments: '{"a":1}' },
          inside: ['{"a"', ':1}'].map((delta) => ({
            type: 'response.function_call_arguments.delta',
            ...at,
            delta,
          })),
        };
      case 'shell':
        return { done: { type: 'shell_call', ...call, action }, inside: [] };
      case 'hosted shell': {
        const environment = { type: 'container_reference', container_id: 'c' };
        return { done: { type: 'shell_call', ...call, action, environment }, inside: [] };
      }
      case 'search':
        return {
          done: { type: 'web_search_call', id, status: 'completed', action: { type: 'search', query: 'q' } },
          inside: [{ type: 'response.web_search_call.searching', ...at }],
        };
    }
  }

  function framesOfItem(
    kind: Kind,
    index: number,
  ): { readonly frames: readonly JsonObject[]; readonly done: JsonObject } {
    const { done, inside } = itemOf(kind, index);
    const empty = kind === 'message' ? { content: [] } : kind === 'function' ? { arguments: '' } : {};
    const added = { ...done, status: 'in_progress', ...empty };
    return {
      done,
      frames: [
        { type: 'response.output_item.added', output_index: index, item: added },
        ...inside,
        { type: 'response.output_item.done', output_index: index, item: done },
      ],
    };
  }

  /** All events, each item's in their order, items begun in theirs: `turns` says whose event is next. Nobody begins a message inside another. */
  function mixed(
    kinds: readonly Kind[],
    turns: readonly number[],
  ): { frames: JsonObject[]; output: JsonObject[] } {
    const items = kinds.map(framesOfItem);
    const left = items.map(({ frames }) => [...frames]);
    const frames: JsonObject[] = [];
    let begun = 0;
    const isOpen = (index: number): boolean => index < begun && (left[index]?.length ?? 0) > 0;
    for (let round = 0; left.some((rest) => rest.length > 0); round += 1) {
      const may = left.flatMap((rest, index) => {
        if (rest.length === 0 || index > begun) return [];
        const waits = index === begun && kinds[index] === 'message';
        return waits && kinds.some((kind, other) => kind === 'message' && isOpen(other)) ? [] : [index];
      });
      const next = may[(turns[round] ?? 0) % may.length] ?? 0;
      if (next === begun) begun += 1;
      const frame = left[next]?.shift();
      if (frame !== undefined) frames.push(frame);
    }
    return { frames, output: items.map(({ done }) => done) };
  }

  const kind = fc.constantFrom<Kind>('message', 'function', 'shell', 'hosted shell', 'search');

  it('keep the order of the output, and messages their parts', () => {
    fc.assert(
      fc.property(
        fc.array(kind, { minLength: 1, maxLength: 5 }),
        fc.array(fc.nat({ max: 11 }), { maxLength: 50 }),
        (kinds, turns) => {
          const { frames, output } = mixed(kinds, turns);
          const events = decode([created, ...frames, completed(output)]);
          expect(whole(events).output).toEqual(output);
          expect(outputOf(encode(events))).toEqual(output);
        },
      ),
      { numRuns: tries(2000) },
    );
  });

  it('a hosted shell call between the parts of a message stands behind both', () => {
    const { frames, output } = mixed(['message', 'hosted shell'], [0, 0, 0, 0, 0, 1, 1]);
    expect(frames.map(({ type }) => type).indexOf('response.output_item.done')).toBeLessThan(8);
    expect(whole(decode([created, ...frames, completed(output)])).output).toEqual(output);
  });
});

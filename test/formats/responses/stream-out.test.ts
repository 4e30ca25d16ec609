import { describe, expect, it } from 'vitest';
import { GatewayError } from '../../../core/sdk/errors.ts';
import { unsealProof } from '../../../core/formats/_shared/proof.ts';
import { ResponsesStreamEncoder } from '../../../core/formats/responses/stream-out/index.ts';
import type { GatewayEvent } from '../../../core/model/event.ts';
import type { JsonObject } from '../../../core/model/json.ts';
import { checkLegal } from '../../support/legal-responses.ts';
import { context, encode, jsonOf, outputOf, reply, responseOf, text, typesOf } from './reply-support.ts';

function call(name: string, input: string, block = 0, custom = false): GatewayEvent[] {
  return [
    {
      type: 'tool-start',
      block,
      choice: 0,
      id: `call_${block}`,
      name,
      ...(custom ? { custom } : {}),
    },
    ...(input === '' ? [] : [{ type: 'tool-delta', block, choice: 0, input } as const]),
    { type: 'tool-end', block, choice: 0 },
  ];
}

function thought(words: string, block = 0): GatewayEvent[] {
  return [
    { type: 'reasoning-start', block, choice: 0 },
    { type: 'reasoning-delta', block, choice: 0, text: words },
    { type: 'reasoning-end', block, choice: 0 },
  ];
}

describe('an answer', () => {
  it('is told in the official order, with everything once more at the end', () => {
    const frames = encode(
      reply([...thought('Hm.'), ...text('Hello.', 1)]),
      context({ reasoning: { summary: 'auto' } }),
    );
    expect(checkLegal(frames)).toEqual([]);
    expect(frames.at(-1)).toEqual({ text: '[DONE]' });
    expect(typesOf(frames)).toEqual([
      'created',
      'in_progress',
      'output_item.added',
      'reasoning_summary_part.added',
      'reasoning_summary_text.delta',
      'reasoning_summary_text.done',
      'reasoning_summary_part.done',
      'output_item.done',
      'output_item.added',
      'content_part.added',
      'output_text.delta',
      'output_text.done',
      'content_part.done',
      'output_item.done',
      'completed',
    ]);
    expect(outputOf(frames)).toEqual([
      { type: 'reasoning', id: 'rs_01_0', summary: [{ type: 'summary_text', text: 'Hm.' }] },
      {
        type: 'message',
        id: 'msg_01_1',
        status: 'completed',
        role: 'assistant',
        content: [{ type: 'output_text', text: 'Hello.', annotations: [], logprobs: [] }],
      },
    ]);
  });

  it('carries the whole response object, with the request in force and the official defaults', () => {
    const tools = [{ type: 'function', name: 'f', parameters: null, strict: true }, { type: 'web_search' }];
    const body = {
      model: 'm',
      instructions: 'Be brief.',
      temperature: 0.5,
      tools,
      metadata: { a: 'b' },
      conversation: 'conv_1',
      reasoning: { effort: 'low' },
      service_tier: 'auto',
      presence_penalty: 0.25,
      top_p: null,
    };
    const {
      completed_at: completed,
      output: _,
      ...response
    } = responseOf(encode(reply(text('Hi')), context(body)));
    expect(completed).toBeGreaterThanOrEqual(1_760_000_001);
    expect(response).toEqual({
      id: 'resp_01',
      object: 'response',
      created_at: 1_760_000_001,
      status: 'completed',
      background: false,
      error: null,
      frequency_penalty: 0,
      incomplete_details: null,
      instructions: 'Be brief.',
      max_output_tokens: null,
      max_tool_calls: null,
      model: 'm',
      parallel_tool_calls: true,
      presence_penalty: 0.25,
      previous_response_id: null,
      conversation: { id: 'conv_1' },
      prompt_cache_key: null,
      reasoning: { effort: 'low', summary: null },
      safety_identifier: null,
      service_tier: 'default',
      store: true,
      temperature: 0.5,
      text: { format: { type: 'text' } },
      tool_choice: 'auto',
      tools: [{ ...tools[0], description: null }, tools[1]],
      top_logprobs: 0,
      top_p: 1,
      truncation: 'disabled',
      usage: {
        input_tokens: 100,
        input_tokens_details: { cached_tokens: 40, cache_write_tokens: 10 },
        output_tokens: 30,
        output_tokens_details: { reasoning_tokens: 20 },
        total_tokens: 130,
      },
      user: null,
      metadata: { a: 'b' },
    });
  });

  it('without a word is an empty message: clients read the first item', () => {
    const frames = encode(
      reply([
        { type: 'text-start', block: 0, choice: 0 },
        { type: 'text-end', block: 0, choice: 0 },
      ]),
    );
    expect(checkLegal(frames)).toEqual([]);
    expect(outputOf(frames)).toMatchObject([
      { type: 'message', content: [{ type: 'output_text', text: '' }] },
    ]);
  });

  it('has the same ids each time it is written', () => {
    const events = reply([...thought('Hm.'), ...text('Hello.', 1), ...call('f', '{}', 2)]);
    const ids = (): unknown[] => outputOf(encode(events)).map(({ id }) => id);
    expect(ids()).toEqual(['rs_01_0', 'msg_01_1', 'fc_01_2']);
    expect(ids()).toEqual(ids());
  });

  it('joins texts that follow each other into one message', () => {
    const frames = encode(reply([...text('One.'), ...text('Two.', 1)]));
    expect(checkLegal(frames)).toEqual([]);
    expect(outputOf(frames)).toMatchObject([{ content: [{ text: 'One.' }, { text: 'Two.' }] }]);
  });

  it.each([
    ['length', 'max_output_tokens'],
    ['context-window', 'max_output_tokens'],
    ['content-filter', 'content_filter'],
    ['refusal', 'content_filter'],
  ] as const)('that ended by %s is incomplete, and so is the message that was cut', (reason, word) => {
    const frames = encode(reply(text('Half'), { reason }));
    expect(checkLegal(frames)).toEqual([]);
    expect(typesOf(frames).at(-1)).toBe('incomplete');
    expect(responseOf(frames)).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason: word },
      output: [{ status: 'incomplete' }],
    });
  });

  it('that is a refusal in words is complete', () => {
    const frames = encode(
      reply(
        [
          { type: 'refusal-start', block: 0, choice: 0 },
          { type: 'refusal-delta', block: 0, choice: 0, text: 'No.' },
          { type: 'refusal-end', block: 0, choice: 0 },
        ],
        { reason: 'refusal' },
      ),
    );
    expect(checkLegal(frames)).toEqual([]);
    expect(responseOf(frames)).toMatchObject({
      status: 'completed',
      output: [{ content: [{ type: 'refusal', refusal: 'No.' }] }],
    });
  });

  it('says only the first of several answers, and reports the others', () => {
    const losses: string[] = [];
    const other = text('B', 1).map((event) => ({ ...event, choice: 1 })) as GatewayEvent[];
    const frames = encode(
      reply([...text('A'), ...other]),
      context({}, { drop: (path) => losses.push(path) }),
    );
    expect(checkLegal(frames)).toEqual([]);
    expect(outputOf(frames)).toMatchObject([{ content: [{ text: 'A' }] }]);
    expect(losses).toEqual(['choices']);
  });
});

describe('calls', () => {
  it('that come interleaved are told one after the other', () => {
    const start = (block: number): GatewayEvent => ({
      type: 'tool-start',
      block,
      choice: 0,
      id: `call_${block}`,
      name: 'f',
    });
    const input = (block: number, words: string): GatewayEvent => ({
      type: 'tool-delta',
      block,
      choice: 0,
      input: words,
    });
    const end = (block: number): GatewayEvent => ({ type: 'tool-end', block, choice: 0 });
    const frames = encode(
      reply([
        start(0),
        start(1),
        input(1, '{"b":'),
        input(0, '{"a":'),
        input(1, '2}'),
        end(1),
        input(0, '1}'),
        end(0),
      ]),
    );
    expect(checkLegal(frames)).toEqual([]);
    expect(outputOf(frames)).toMatchObject([
      { call_id: 'call_0', arguments: '{"a":1}' },
      { call_id: 'call_1', arguments: '{"b":2}' },
    ]);
  });

  it('are told while they are written', () => {
    const encoder = new ResponsesStreamEncoder(context());
    const [start, piece] = call('f', '{"x":');
    encoder.event({ type: 'head', id: '', model: '' });
    expect(typesOf(encoder.event(start as GatewayEvent))).toEqual(['output_item.added']);
    expect(typesOf(encoder.event(piece as GatewayEvent))).toEqual(['function_call_arguments.delta']);
  });

  it('without arguments have an empty object', () => {
    const frames = encode(reply(call('f', '')));
    expect(checkLegal(frames)).toEqual([]);
    expect(outputOf(frames)).toMatchObject([{ arguments: '{}' }]);
  });

  it('are spelled as the request spells its tools, also those it only referred to', () => {
    const expanded: JsonObject = {
      tools: [
        {
          type: 'namespace',
          name: 'code',
          tools: [
            { type: 'custom', name: 'exec' },
            { type: 'function', name: 'f' },
          ],
        },
        { type: 'local_shell' },
        { type: 'shell' },
        { type: 'apply_patch' },
      ],
    };
    const frames = encode(
      reply([
        ...call('code__exec', 'ls', 0, true),
        ...call('code__f', '{}', 1),
        ...call('local_shell', '{"command":["ls"]}', 2),
        ...call('shell', '{"commands":["ls"]}', 3),
        ...call('apply_patch', '{"type":"delete_file","path":"a"}', 4),
        ...call('code__exec', '{"input":"pwd"}', 5),
      ]),
      context({}, { expanded }),
    );
    expect(checkLegal(frames)).toEqual([]);
    expect(outputOf(frames)).toMatchObject([
      { type: 'custom_tool_call', name: 'exec', namespace: 'code', input: 'ls', id: 'ctc_01_0' },
      { type: 'function_call', name: 'f', namespace: 'code', arguments: '{}' },
      { type: 'local_shell_call', call_id: 'call_2', action: { type: 'exec', command: ['ls'], env: {} } },
      { type: 'shell_call', call_id: 'call_3', action: { commands: ['ls'] } },
      { type: 'apply_patch_call', call_id: 'call_4', operation: { type: 'delete_file', path: 'a' } },
      { type: 'custom_tool_call', name: 'exec', input: 'pwd' },
    ]);
  });

  it.each(['{"command":"rm -rf /"}', '{"command":', '[]'])(
    'of a shell that cannot be read are not run: %s',
    (input) => {
      const frames = encode(reply(call('local_shell', input)), context({ tools: [{ type: 'local_shell' }] }));
      expect(checkLegal(frames)).toEqual([]);
      expect(outputOf(frames)).toMatchObject([
        { type: 'function_call', name: 'local_shell', arguments: input },
      ]);
    },
  );

  it('never have the same id twice', () => {
    const [start, , end] = call('f', '{}');
    const again = { ...start, block: 1 } as GatewayEvent;
    const frames = encode(reply([start as GatewayEvent, end as GatewayEvent, again]));
    expect(checkLegal(frames)).toEqual([]);
    expect(outputOf(frames).map(({ call_id: id }) => id)).toEqual(['call_0', 'call_0_2']);
  });
});

describe('reasoning', () => {
  it('is told as a summary, also when none was asked for', () => {
    const frames = encode(reply(thought('Hm.')));
    expect(checkLegal(frames)).toEqual([]);
    expect(outputOf(frames)).toMatchObject([{ summary: [{ type: 'summary_text', text: 'Hm.' }] }]);
  });

  it('brings its proof, and those of other formats sealed', () => {
    const own = { format: 'responses', kind: 'encrypted', value: 'gAAAA' } as const;
    const foreign = { format: 'messages', kind: 'signature', value: 'sig' } as const;
    const end = (block: number, proof: typeof own | typeof foreign): GatewayEvent => ({
      type: 'reasoning-end',
      block,
      choice: 0,
      proof,
    });
    const frames = encode(
      reply([
        { type: 'reasoning-start', block: 0, choice: 0 },
        end(0, own),
        ...thought('Hm.', 1).slice(0, 2),
        end(1, foreign),
      ]),
    );
    expect(checkLegal(frames)).toEqual([]);
    const [first, second] = outputOf(frames);
    expect(first?.encrypted_content).toBe('gAAAA');
    expect(unsealProof(String(second?.encrypted_content))).toEqual({ proof: foreign });
  });

  it('proofs of calls and texts ride in items of their own: before the call, after the text', () => {
    const proof = { format: 'generate-content', kind: 'signature', value: 'sig' } as const;
    const [start, ...rest] = call('f', '{}', 1);
    const frames = encode(
      reply([
        ...text('A').slice(0, 2),
        { type: 'text-end', block: 0, choice: 0, proof },
        { ...start, proof } as GatewayEvent,
        ...rest,
      ]),
    );
    expect(checkLegal(frames)).toEqual([]);
    const output = outputOf(frames);
    expect(output.map(({ type }) => type)).toEqual(['message', 'reasoning', 'reasoning', 'function_call']);
    expect(unsealProof(String(output[1]?.encrypted_content))).toEqual({ proof, on: 'text' });
    expect(unsealProof(String(output[2]?.encrypted_content))).toEqual({ proof, on: 'tool-call' });
  });
});

describe('what stands beside the text', () => {
  it('sources are annotations; what has no address is reported', () => {
    const losses: string[] = [];
    const [start, words, end] = text('Hello.') as [GatewayEvent, GatewayEvent, GatewayEvent];
    const frames = encode(
      reply([
        start,
        words,
        {
          type: 'citation',
          block: 0,
          choice: 0,
          citation: { url: 'https://a.example', title: 'A', quote: 'q' },
        },
        { type: 'citation', block: 0, choice: 0, citation: { title: 'a book' } },
        end,
      ]),
      context({}, { drop: (path) => losses.push(path) }),
    );
    expect(checkLegal(frames)).toEqual([]);
    const annotation = {
      type: 'url_citation',
      url: 'https://a.example',
      title: 'A',
      start_index: 0,
      end_index: 6,
    };
    expect(outputOf(frames)).toMatchObject([{ content: [{ annotations: [annotation] }] }]);
    expect(losses).toEqual(['citation.quote', 'citation']);
  });

  it('probabilities of tokens have every field that typed clients expect', () => {
    const logprobs = [{ token: 'é', logprob: -0.5, top: [{ token: 'é', logprob: -0.5 }] }];
    const frames = encode(reply([{ type: 'text-delta', block: 0, choice: 0, text: 'é', logprobs }]));
    expect(checkLegal(frames)).toEqual([]);
    expect(outputOf(frames)).toMatchObject([
      {
        content: [
          {
            logprobs: [
              {
                token: 'é',
                logprob: -0.5,
                bytes: [195, 169],
                top_logprobs: [{ token: 'é', logprob: -0.5, bytes: [195, 169] }],
              },
            ],
          },
        ],
      },
    ]);
  });

  it('an image is an item with its data; a sound is reported', () => {
    const losses: string[] = [];
    const frames = encode(
      reply([
        { type: 'media-start', block: 0, choice: 0, media: 'image', mimeType: 'image/png' },
        { type: 'media-delta', block: 0, choice: 0, data: 'QUI=' },
        { type: 'media-delta', block: 0, choice: 0, data: 'QUI=' },
        { type: 'media-end', block: 0, choice: 0 },
        { type: 'media-start', block: 1, choice: 0, media: 'audio' },
        { type: 'media-delta', block: 1, choice: 0, data: 'QUI=', transcript: 'a' },
        { type: 'media-end', block: 1, choice: 0 },
      ]),
      context({}, { drop: (path) => losses.push(path) }),
    );
    expect(checkLegal(frames)).toEqual([]);
    expect(outputOf(frames)).toEqual([
      {
        type: 'image_generation_call',
        id: 'ig_01_0',
        status: 'completed',
        result: 'QUJBQg==',
        output_format: 'png',
      },
    ]);
    expect(losses).toEqual(['media']);
  });

  it('what only another format knows is reported', () => {
    const losses: string[] = [];
    const [start, ...rest] = text('A') as [GatewayEvent, ...GatewayEvent[]];
    const extra = { messages: { odd: 1, $mark: 1 } };
    encode(
      reply([
        { ...start, extra } as GatewayEvent,
        ...rest,
        { type: 'opaque', format: 'messages', value: { type: 'x' } },
      ]),
      context({}, { drop: (path) => losses.push(path) }),
    );
    expect(losses).toEqual(['odd', 'opaque.x']);
  });

  it('items that a plugin writes get an id and a place', () => {
    const item = { type: 'compaction', encrypted_content: 'sealed' };
    const frames = encode(
      reply([
        {
          type: 'opaque',
          format: 'responses',
          value: { type: 'response.output_item.done', output_index: 0, item },
        },
        ...text('A'),
      ]),
    );
    expect(checkLegal(frames)).toEqual([]);
    expect(outputOf(frames)).toMatchObject([
      { ...item, id: 'cmp_01_0' },
      { type: 'message', id: 'msg_01_1' },
    ]);
  });
});

describe('an answer that breaks', () => {
  const error = new GatewayError('upstream_cut', 'The upstream closed the connection.');

  it('ends with an error, and with a failed response that holds what was finished', () => {
    const encoder = new ResponsesStreamEncoder(context());
    const events = reply([...thought('Hm.'), ...text('Hel', 1)]).slice(0, 6);
    const frames = [...events.flatMap((event) => encoder.event(event)), ...encoder.error(error)];
    expect(checkLegal(frames)).toEqual([]);
    const [flat, failed] = jsonOf(frames).slice(-2);
    expect(flat).toMatchObject({ type: 'error', code: 'upstream_cut', message: error.message, param: null });
    expect(failed).toMatchObject({
      type: 'response.failed',
      response: {
        id: 'resp_01',
        status: 'failed',
        error: { code: 'server_error', message: error.message },
        output: [{ type: 'reasoning' }],
      },
    });
    expect(encoder.event({ type: 'text-delta', block: 1, choice: 0, text: 'more' })).toEqual([]);
    expect(encoder.end()).toEqual([]);
    expect(encoder.error(error)).toEqual([]);
  });

  it('before it began says the error alone', () => {
    expect(new ResponsesStreamEncoder(context()).error(error)).toEqual([
      {
        event: 'error',
        json: {
          type: 'error',
          sequence_number: 0,
          code: 'upstream_cut',
          message: error.message,
          param: null,
        },
      },
    ]);
  });

  it.each([
    ['rate_limit_exceeded', 'rate_limit_exceeded'],
    ['insufficient_quota', 'insufficient_quota'],
    ['context_length_exceeded', 'context_length_exceeded'],
    ['content_policy_violation', 'invalid_prompt'],
    ['invalid_request', 'invalid_prompt'],
    ['upstream_timeout', 'server_error'],
  ] as const)('of %s is told as %s', (code, word) => {
    const encoder = new ResponsesStreamEncoder(context());
    encoder.event({ type: 'head', id: '', model: '' });
    const frames = encoder.error(new GatewayError(code, 'No.'));
    expect(responseOf(frames)).toMatchObject({ error: { code: word, message: 'No.' } });
  });
});

import OpenAI, { APIError } from 'openai';
import { zodTextFormat } from 'openai/helpers/zod';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { GatewayError } from '../../../core/sdk/errors.ts';
import type { WireFrame } from '../../../core/sdk/format.ts';
import { ResponsesStreamEncoder } from '../../../core/formats/responses/stream-out/index.ts';
import { errorReply } from '../../../core/formats/_openai/errors.ts';
import { decodeWhole } from '../../../core/formats/responses/whole.ts';
import { writeSse } from '../../../core/formats/_shared/sse.ts';
import type { GatewayEvent } from '../../../core/model/event.ts';
import type { JsonObject } from '../../../core/model/json.ts';
import { fixturesOf } from '../../support/fixtures.ts';
import { context, decode, encode, framesOf, outputOf, reply, text, whole } from './reply-support.ts';

/** The vendor's client, for which every answer is this one. */
function clientOf(body: string, init: ResponseInit): OpenAI {
  return new OpenAI({ apiKey: 'k', maxRetries: 0, fetch: () => Promise.resolve(new Response(body, init)) });
}

function streaming(frames: readonly WireFrame[]): OpenAI {
  return clientOf(frames.map(writeSse).join(''), { headers: { 'content-type': 'text/event-stream' } });
}

const answering = (body: JsonObject, status = 200): OpenAI =>
  clientOf(JSON.stringify(body), { status, headers: { 'content-type': 'application/json' } });

const request = { model: 'm', input: 'Hi' };
/** As it would travel: what the helper adds for convenience is no part of it. */
const plain = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value), (key, member: unknown) =>
    ['parsed', 'parsed_arguments', 'output_text', 'output_parsed', '_request_id'].includes(key)
      ? undefined
      : member,
  );

const interleaved: GatewayEvent[] = [
  { type: 'reasoning-start', block: 0, choice: 0 },
  { type: 'reasoning-delta', block: 0, choice: 0, text: 'Two ' },
  { type: 'reasoning-delta', block: 0, choice: 0, text: 'cities.' },
  { type: 'reasoning-end', block: 0, choice: 0 },
  { type: 'text-start', block: 1, choice: 0 },
  { type: 'text-delta', block: 1, choice: 0, text: 'Both ' },
  { type: 'text-delta', block: 1, choice: 0, text: 'calls.' },
  { type: 'citation', block: 1, choice: 0, citation: { url: 'https://a.example', title: 'A' } },
  { type: 'text-end', block: 1, choice: 0 },
  { type: 'tool-start', block: 2, choice: 0, id: 'call_a', name: 'f' },
  { type: 'tool-start', block: 3, choice: 0, id: 'call_b', name: 'g' },
  { type: 'tool-delta', block: 3, choice: 0, input: '{"b":2}' },
  { type: 'tool-delta', block: 2, choice: 0, input: '{"a":1}' },
  { type: 'tool-end', block: 3, choice: 0 },
  { type: 'tool-end', block: 2, choice: 0 },
];

describe('the official client, streaming', () => {
  // Kinds of items and events that the client does not know are not its concern.
  it.each(fixturesOf('responses', 'streams', '.sse').filter(({ name }) => name !== 'hosted'))(
    'reads stream $name to its end',
    async (fixture) => {
      const frames = encode(decode(framesOf(fixture.text)));
      const response = await streaming(frames).responses.stream(request).finalResponse();
      expect(plain(response.output)).toEqual(outputOf(frames));
    },
  );

  it.each([
    ['as text', context()],
    ['as a summary', context({ reasoning: { summary: 'auto' } })],
  ])('reads a reply of another format, with its reasoning %s', async (_, asking) => {
    const frames = encode(reply(interleaved, { reason: 'tool-calls' }), asking);
    const stream = streaming(frames).responses.stream(request);
    let words = '';
    const inputs: string[] = [];
    stream.on('response.output_text.delta', ({ delta }) => void (words += delta));
    stream.on('response.function_call_arguments.delta', ({ snapshot }) => void inputs.push(snapshot));
    const response = await stream.finalResponse();
    expect(words).toBe('Both calls.');
    expect(inputs).toEqual(['{"a":1}', '{"b":2}']);
    expect(response.output_text).toBe('Both calls.');
    expect(response.usage).toMatchObject({
      input_tokens: 100,
      output_tokens_details: { reasoning_tokens: 20 },
    });
    expect(plain(response.output)).toEqual(outputOf(frames));
  });

  it('reads a refusal, an image and an answer that was cut', async () => {
    const events: GatewayEvent[] = [
      { type: 'media-start', block: 0, choice: 0, media: 'image', mimeType: 'image/png' },
      { type: 'media-delta', block: 0, choice: 0, data: 'QUJD' },
      { type: 'media-end', block: 0, choice: 0 },
      { type: 'refusal-start', block: 1, choice: 0 },
      { type: 'refusal-delta', block: 1, choice: 0, text: 'No mo' },
      { type: 'refusal-end', block: 1, choice: 0 },
    ];
    const frames = encode(reply(events, { reason: 'length' }));
    const response = await streaming(frames).responses.stream(request).finalResponse();
    expect(response.status).toBe('incomplete');
    expect(plain(response.output)).toEqual(outputOf(frames));
  });

  it('reads free-text and shell calls', async () => {
    const call = (block: number, name: string, input: string, custom: boolean): GatewayEvent[] => [
      { type: 'tool-start', block, choice: 0, id: `call_${block}`, name, ...(custom ? { custom } : {}) },
      { type: 'tool-delta', block, choice: 0, input },
      { type: 'tool-end', block, choice: 0 },
    ];
    const events = [
      ...call(0, 'code__exec', 'ls', true),
      ...call(1, 'shell', '{"commands":["ls"]}', false),
      ...call(2, 'apply_patch', '{"type":"delete_file","path":"a"}', false),
    ];
    const tools = [
      { type: 'namespace', name: 'code', tools: [{ type: 'custom', name: 'exec' }] },
      { type: 'shell' },
      { type: 'apply_patch' },
    ];
    const frames = encode(reply(events), context({ tools }));
    const response = await streaming(frames).responses.stream(request).finalResponse();
    expect(response.output.map(({ type }) => type)).toEqual([
      'custom_tool_call',
      'shell_call',
      'apply_patch_call',
    ]);
    expect(plain(response.output)).toEqual(outputOf(frames));
  });

  it('parses structured output', async () => {
    const frames = encode(reply(text('{"hour":9}')));
    const stream = streaming(frames).responses.stream({
      ...request,
      text: { format: zodTextFormat(z.object({ hour: z.number() }), 'time') },
    });
    expect((await stream.finalResponse()).output_parsed).toEqual({ hour: 9 });
  });
});

describe('the official client, when a stream breaks', () => {
  const error = new GatewayError('upstream_cut', 'The upstream closed the connection.');
  const broken = (): OpenAI => {
    const encoder = new ResponsesStreamEncoder(context());
    const begun = reply(text('Hel')).slice(0, 3);
    return streaming([...begun.flatMap((event) => encoder.event(event)), ...encoder.error(error)]);
  };
  const raised = { message: expect.stringContaining(error.message) as string };

  it('raises the error with its message', async () => {
    const types: string[] = [];
    const reading = async (): Promise<void> => {
      for await (const event of await broken().responses.create({ ...request, stream: true }))
        types.push(event.type);
    };
    const failure: unknown = await reading().catch((thrown: unknown) => thrown);
    expect(failure).toBeInstanceOf(APIError);
    expect(failure).toMatchObject({ ...raised, code: 'upstream_cut' });
    expect(types).toContain('response.output_text.delta');
  });

  it('raises it from the stream helper, too', async () => {
    const failure: unknown = await broken()
      .responses.stream(request)
      .finalResponse()
      .catch((thrown: unknown) => thrown);
    expect(failure).toBeInstanceOf(APIError);
    expect(failure).toMatchObject(raised);
  });

  it('raises an error that came before anything else', async () => {
    const client = streaming(new ResponsesStreamEncoder(context()).error(error));
    await expect(client.responses.stream(request).finalResponse()).rejects.toMatchObject(raised);
  });
});

describe('the official client, without a stream', () => {
  it.each(fixturesOf('responses', 'replies', '.json'))('reads reply $name', async (fixture) => {
    const body = JSON.parse(fixture.text) as JsonObject;
    const response = await answering(whole(decodeWhole(body))).responses.create(request);
    expect(plain(response)).toEqual(body);
  });

  it('parses structured output, and knows the text of the answer', async () => {
    const response = await answering(whole(reply(text('{"hour":9}')))).responses.parse({
      ...request,
      text: { format: zodTextFormat(z.object({ hour: z.number() }), 'time') },
    });
    expect(response.output_parsed).toEqual({ hour: 9 });
    expect(response.output_text).toBe('{"hour":9}');
  });

  it('raises an error with its code', async () => {
    const { status, body } = errorReply(
      new GatewayError('previous_response_not_found', "Previous response with id 'resp_x' not found.", {
        param: 'previous_response_id',
      }),
      'req_1',
    );
    await expect(answering(body, status).responses.create(request)).rejects.toMatchObject({
      status: 400,
      code: 'previous_response_not_found',
      param: 'previous_response_id',
    });
  });
});

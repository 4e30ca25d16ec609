import { from, type Observable } from 'rxjs';
import { describe, expect, test } from 'vitest';
import { GatewayError, type GatewayEvent } from 'sluice';
import type { Codec } from 'sluice/channel-kit';
import type { Call, Target } from 'sluice/internal';
import { chatCodec as chatCompletions } from '../../../core/formats/chat-completions/codec.ts';
import { chat as generateContent } from '../../../core/formats/generate-content/codec.ts';
import { chatCodec as messages } from '../../../core/formats/messages/codec.ts';
import { responsesCodec as responses } from '../../../core/formats/responses/codec.ts';
import { decodeReply } from '../../../plugins/translation/decode-reply.ts';
import { passReply } from '../../../plugins/translation/pass-reply.ts';

const codecs: readonly Codec[] = [
  chatCompletions,
  messages,
  responses,
  generateContent,
] as unknown as readonly Codec[];

/** Bodies with which providers and the proxies before them fail under status 200. */
const bodies = {
  'an error in the envelope': '{"error":{"message":"it broke","type":"server_error"}}',
  'an error behind other members': '{"id":"1","object":"x","error":{"message":"it broke","code":500}}',
  'an error as a text': '{"error":"it broke"}',
  'a code and a message': '{"code":40001,"message":"it broke"}',
  'a code as a text': '{"code":"500","msg":"it broke","data":null}',
  'a code beside what says that it failed': '{"code":1,"message":"it broke","result":null,"success":false}',
  'a code in an envelope of its own': '{"base_resp":{"status_code":1004,"status_msg":"it broke"}}',
  'an object named error': '{"object":"error","message":"it broke","code":500}',
  'a detail': '{"detail":"it broke"}',
  'a list of errors': '{"errors":[{"message":"it broke"}]}',
  'an error code': '{"error_code":17,"error_msg":"it broke"}',
  'an error in a list': '[{"error":{"message":"it broke"}}]',
  'an empty object': '{}',
  'a title': '{"status":500,"title":"it broke"}',
  'no choices': '{"choices":null,"code":1}',
} as const;

const others = {
  'a web page': '<!doctype html><html><body>it broke</body></html>',
  'a web page behind blank lines': '\n\n  <html>it broke</html>',
  'a sentence': 'Bad gateway: it broke',
  nothing: '',
  'blank lines': '\n\n',
  'a text': '"it broke"',
  null: 'null',
} as const;

const streams = {
  'comments alone': ': it broke\n\n: it broke\n\n',
  'an end without a beginning': 'data: [DONE]\n\n',
  'empty frames': 'data:\n\ndata:\n\n',
  'a frame that is no JSON': 'data: it broke\n\n',
  'half a frame': 'data: {"choices":[{"delta":{"con',
} as const;

/** Decodes a response with these bytes in pieces of one size. */
async function read(
  text: string,
  { codec, stream, passes, size }: { codec: Codec; stream: boolean; passes: boolean; size: number },
): Promise<{ readonly begun: readonly GatewayEvent[]; readonly error: unknown }> {
  const bytes = Buffer.from(text);
  const pieces: GatewayEvent[] = [];
  for (let at = 0; at < bytes.length; at += size)
    pieces.push({ type: 'bytes', bytes: bytes.subarray(at, at + size) });
  const source: Observable<GatewayEvent> = from([
    { type: 'answer', status: 200, headers: {} },
    ...pieces,
  ] satisfies GatewayEvent[]);
  const target = { model: 'm', traits: {} } as Target;
  const call = { codec, stream, askedModel: 'm', body: {} } as Call;
  const reply = passes
    ? passReply(source, { call, target, swallowUsage: false })
    : decodeReply(source, { codec, traits: {}, stream });
  const begun: GatewayEvent[] = [];
  return new Promise((resolve) => {
    reply.subscribe({
      next: (event) => begun.push(event),
      error: (error: unknown) => resolve({ begun, error }),
      complete: () => resolve({ begun, error: undefined }),
    });
  });
}

const ways = codecs.flatMap((codec) =>
  [true, false].flatMap((passes) =>
    [7, 100_000].map((size) => ({
      codec,
      passes,
      size,
      format: codec.format,
      way: passes ? 'passed' : 'decoded',
    })),
  ),
);

describe.each(ways)('$format, $way, in pieces of $size', ({ codec, passes, size }) => {
  /** Describes the outcome in words. */
  const outcome = async (text: string, stream: boolean): Promise<string> => {
    const { begun, error } = await read(text, { codec, stream, passes, size });
    if (begun.length > 0) return 'it has begun';
    if (!(error instanceof GatewayError)) return 'it is taken for a reply';
    if (/<html|doctype/i.test(error.message)) return 'it shows the page';
    return error.origin === 'upstream' && error.retryable ? 'another may answer' : 'it ends here';
  };

  test.each(Object.entries({ ...bodies, ...others }))('%s is no reply', async (_what, body) => {
    expect(await outcome(body, false)).toBe('another may answer');
    expect(await outcome(body, true)).toBe('another may answer');
  });

  test.each(Object.entries(bodies))('%s in a frame is no beginning', async (_what, body) => {
    expect(await outcome(`data: ${body}\n\n`, true)).toBe('another may answer');
    const busy = `: busy\n\nevent: message\ndata: ${body}\n\ndata: [DONE]\n\n`;
    expect(await outcome(busy, true)).toBe('another may answer');
  });

  test.each(Object.entries(streams))('%s is no stream', async (_what, text) => {
    expect(await outcome(text, true)).toBe('another may answer');
  });

  test.each([
    ['rate_limit_exceeded', '{"code":429,"message":"slow down"}'],
    ['server_is_overloaded', '{"code":"503","msg":"busy"}'],
  ])('a code that is a status means what the status means: %s', async (code, body) => {
    const codeOf = async (text: string, stream: boolean): Promise<unknown> =>
      (await read(text, { codec, stream, passes, size })).error;
    expect(await codeOf(body, false)).toMatchObject({ code });
    expect(await codeOf(`data: ${body}\n\n`, true)).toMatchObject({ code });
  });
});

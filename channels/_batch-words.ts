import { lastValueFrom, of, tap } from 'rxjs';
import { GatewayError, type ChannelParts, type JsonObject, type Upstream } from 'sluice';

/** How a provider spells the batches of the chat-completions API that it has in words of its own. */
export interface BatchWords {
  /** Where its batches are, in place of `/batches`. */
  readonly path: string;
  /** What a batch is made with there. */
  request(body: JsonObject): JsonObject;
  /** A batch that it describes, as the API has it. */
  answer(told: JsonObject): JsonObject;
}

/** More than any description of a batch has, in bytes. */
const longest = 4 * 1024 * 1024;

/** Sends what concerns batches in the provider's words, and everything else as it is. */
export function inBatchWords(open: ChannelParts['open'], words: BatchWords): ChannelParts['open'] {
  return async (call, request) => {
    const { path, body, operation } = request;
    const [, rest] = /^\/batches((?:\/.*)?)$/.exec(path) ?? [];
    if (operation !== 'state' || rest === undefined) return open(call, request);
    const asked = rest === '' && typeof body === 'string' ? objectIn(body) : undefined;
    const answer = await open(call, {
      ...request,
      path: words.path + rest,
      ...(asked === undefined ? {} : { body: JSON.stringify(words.request(asked)) }),
    });
    return answer.status >= 200 && answer.status < 300 ? answered(answer, words) : answer;
  };
}

async function answered(answer: Upstream, words: BatchWords): Promise<Upstream> {
  const pieces: Buffer[] = [];
  let length = 0;
  const read = answer.bytes.pipe(
    tap((piece) => {
      length += piece.length;
      if (length > longest)
        throw new GatewayError('upstream_error', `The upstream answered with more than ${longest} bytes.`, {
          origin: 'upstream',
        });
      pieces.push(piece);
    }),
  );
  await lastValueFrom(read, { defaultValue: undefined });
  const whole = Buffer.concat(pieces);
  const told = objectIn(whole.toString());
  const bytes = told === undefined ? whole : Buffer.from(JSON.stringify(words.answer(told)));
  const { 'content-length': _length, ...headers } = answer.headers;
  return { ...answer, headers, bytes: of(bytes) };
}

/** The object in a text of JSON; undefined where there is none. */
function objectIn(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as JsonObject)
      : undefined;
  } catch {
    return undefined;
  }
}

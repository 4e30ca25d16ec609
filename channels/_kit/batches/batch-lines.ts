import { concat, concatMap, defer, from } from 'rxjs';
import {
  GatewayError,
  parseObject,
  type JsonObject,
  type JsonValue,
  type Upstream,
  type Call,
  HeldBytes,
} from 'sluice';

/** Longer lines are no line of a batch, in bytes. */
const longestLine = 16 * 1024 * 1024;

/** A line of results as the chat-completions API has it: `reply` is what the request would have been answered by itself. */
export function resultLine(id: JsonValue | undefined, reply: JsonObject): JsonObject {
  return {
    id: `batch_req_${String(id)}`,
    custom_id: id ?? null,
    response: { status_code: 200, request_id: reply['id'] ?? null, body: reply },
    error: null,
  };
}

/** Such a line of a request that came to nothing. */
export function failureLine(id: JsonValue | undefined, code: JsonValue, message: JsonValue): JsonObject {
  return { id: `batch_req_${String(id)}`, custom_id: id ?? null, response: null, error: { code, message } };
}

/** A file that is made of lines while it is read, no faster than it is wanted. */
export function fileOf(call: Call, lines: AsyncIterable<readonly JsonObject[]>): Upstream {
  async function* pieces(): AsyncGenerator<Buffer> {
    for await (const some of lines) {
      yield Buffer.from(some.map((line) => `${JSON.stringify(line)}\n`).join(''));
      await call.gate.opened();
    }
  }
  return { status: 200, headers: { 'content-type': 'application/jsonl' }, bytes: from(pieces()) };
}

/** A file with each of its lines in other words; one that is no object stays what it is. */
export function eachLine(file: Upstream, words: (line: JsonObject) => JsonObject): Upstream {
  const held = new HeldBytes();
  const take = (): readonly Buffer[] => {
    const text = held.take().toString().trim();
    const line = parseObject(text);
    return text === '' ? [] : [Buffer.from(`${line === undefined ? text : JSON.stringify(words(line))}\n`)];
  };
  const linesOf = (piece: Buffer): readonly Buffer[] => {
    const lines: Buffer[] = [];
    for (let rest = piece; ;) {
      const end = rest.indexOf(0x0a);
      held.push(end < 0 ? rest : rest.subarray(0, end));
      if (held.length > longestLine)
        throw new GatewayError('upstream_error', `A line has more than ${longestLine} bytes.`, {
          origin: 'upstream',
        });
      if (end < 0) return lines;
      for (const line of take()) lines.push(line);
      rest = rest.subarray(end + 1);
    }
  };
  return { ...file, bytes: concat(file.bytes.pipe(concatMap(linesOf)), defer(take)) };
}

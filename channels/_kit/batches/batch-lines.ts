/**
 * Reads and writes the JSON Lines files of the chat-completions batch API while they stream: result lines, error lines, and rewritten
 * lines.
 */
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

/** Maximum length of a line, in bytes. */
const longestLine = 16 * 1024 * 1024;

/** Returns a line of a result file for a request that succeeded. `reply` is the body of its response. */
export function resultLine(id: JsonValue | undefined, reply: JsonObject): JsonObject {
  return {
    id: `batch_req_${String(id)}`,
    custom_id: id ?? null,
    response: { status_code: 200, request_id: reply['id'] ?? null, body: reply },
    error: null,
  };
}

/** Returns a line of an error file for a request that failed. */
export function failureLine(id: JsonValue | undefined, code: JsonValue, message: JsonValue): JsonObject {
  return { id: `batch_req_${String(id)}`, custom_id: id ?? null, response: null, error: { code, message } };
}

/** Returns a response whose body is a JSON Lines file, written while it is read, with backpressure. */
export function fileOf(call: Call, lines: AsyncIterable<readonly JsonObject[]>): Upstream {
  async function* pieces(): AsyncGenerator<Buffer> {
    for await (const some of lines) {
      yield Buffer.from(some.map((line) => `${JSON.stringify(line)}\n`).join(''));
      await call.gate.opened();
    }
  }
  return { status: 200, headers: { 'content-type': 'application/jsonl' }, bytes: from(pieces()) };
}

/** Rewrites each line of a file while it streams. A line that is no JSON object passes unchanged. */
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

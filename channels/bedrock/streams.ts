/**
 * Rewrites responses of Bedrock's runtime for codecs: AWS event streams as Server-Sent Events, and a number from a header as a member of
 * the JSON body.
 */
import { concat, defer, EMPTY, filter, map, throwError } from 'rxjs';
import { wholeBytes, parseObject, type Upstream } from 'sluice';
import {
  truncatedResponse,
  frameAsSse,
  EventStreamCutter,
  eventStreamType,
  type Frame,
} from 'sluice/channel-kit';

/** Returns the response with its event stream as Server-Sent Events, which codecs read. Any other response stays as it is. */
export function unframed(answer: Upstream, format: string): Upstream {
  if (!String(answer.headers['content-type'] ?? '').includes(eventStreamType)) return answer;
  const cutter = new EventStreamCutter();
  const events = answer.bytes.pipe(
    map((chunk) =>
      Buffer.concat(
        cutter.push(chunk).map((frame) => frameAsSse(format === 'messages' ? chunkOf(frame) : frame)),
      ),
    ),
    filter(({ length }) => length > 0),
  );
  const end = defer(() => (cutter.unfinished ? throwError(truncatedResponse) : EMPTY));
  const headers = { ...answer.headers, 'content-type': 'text/event-stream' };
  return { ...answer, headers, bytes: concat(events, end) };
}

/** Returns the event of the messages format that a frame carries in base64. An exception becomes an error event. */
function chunkOf({ event, data }: Frame): Frame {
  const body = parseObject(data);
  if (event === 'error') {
    const { __type: type, message } = body ?? {};
    return { event, data: JSON.stringify({ type: 'error', error: { type, message } }) };
  }
  const json = typeof body?.bytes === 'string' ? Buffer.from(body.bytes, 'base64').toString('utf8') : data;
  const type = /^\{"type":"(\w+)"/.exec(json)?.[1] ?? parseObject(json)?.type;
  return { ...(typeof type === 'string' ? { event: type } : {}), data: json };
}

/** The start of a JSON object that has members. */
const objectStart = /^\s*\{(?=\s*")/;

/**
 * Returns the answer with a number added as the first member of its JSON object, so that a member of the same name in the object itself
 * counts. An error, and what is no JSON object, stay as they are.
 */
export function withNumber(answer: Upstream, name: string, value: number): Upstream {
  if (answer.status !== 200) return answer;
  const bytes = answer.bytes.pipe(
    wholeBytes(),
    map((body) => {
      const start = objectStart.exec(body.toString('latin1', 0, 1024))?.[0];
      if (start === undefined) return body;
      return Buffer.concat([Buffer.from(`{"${name}":${value},`), body.subarray(start.length)]);
    }),
  );
  return { ...answer, bytes };
}

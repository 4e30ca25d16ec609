import { concat, defer, EMPTY, filter, map, reduce, throwError, type Observable } from 'rxjs';
import type { JsonObject, Upstream } from 'sluice';
import {
  asSse,
  cutShort,
  EventStreamCutter,
  eventStreamType,
  isObject,
  parseObject,
  type Frame,
} from 'sluice/internal';

/** The answer with its event stream as server-sent events, the form that formats read; any other as it is. */
export function unframed(answer: Upstream, format: string): Upstream {
  if (!String(answer.headers['content-type'] ?? '').includes(eventStreamType)) return answer;
  const cutter = new EventStreamCutter();
  const events = answer.bytes.pipe(
    map((chunk) =>
      Buffer.concat(cutter.push(chunk).map((frame) => asSse(format === 'messages' ? chunkOf(frame) : frame))),
    ),
    filter(({ length }) => length > 0),
  );
  const end = defer(() => (cutter.unfinished ? throwError(cutShort) : EMPTY));
  const headers = { ...answer.headers, 'content-type': 'text/event-stream' };
  return { ...answer, headers, bytes: concat(events, end) };
}

/** What the model itself has said, as it said it: it rides in base64. An exception is an error event of that format. */
function chunkOf({ event, data }: Frame): Frame {
  const body = parseObject(data);
  if (event === 'error') {
    const { __type: type, message } = body ?? {};
    return { event, data: JSON.stringify({ type: 'error', error: { type, message } }) };
  }
  const said = typeof body?.bytes === 'string' ? Buffer.from(body.bytes, 'base64').toString('utf8') : data;
  const type = /^\{"type":"(\w+)"/.exec(said)?.[1] ?? parseObject(said)?.type;
  return { ...(typeof type === 'string' ? { event: type } : {}), data: said };
}

/** The answer with its JSON changed; an error, and what is no JSON, stay as they are. Only for short answers. */
export function changed(answer: Upstream, change: (body: JsonObject) => JsonObject): Upstream {
  if (answer.status !== 200) return answer;
  const { 'content-length': _, ...headers } = answer.headers;
  const bytes: Observable<Buffer> = answer.bytes.pipe(
    reduce((all, chunk) => Buffer.concat([all, chunk]), Buffer.alloc(0)),
    map((all) => {
      const body = parseObject(all.toString('utf8'));
      return isObject(body) ? Buffer.from(JSON.stringify(change(body))) : all;
    }),
  );
  return { ...answer, headers, bytes };
}

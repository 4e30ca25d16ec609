import { concat, map, of, type Observable } from 'rxjs';
import { addReplyHeaders, type GatewayEvent, type Upstream, type Call } from 'sluice';

/** Passes a provider's response to the client: JSON unchanged, and files as bytes that no browser renders as a page. */
export function passedOn(call: Call, { status, headers, bytes }: Upstream): Observable<GatewayEvent> {
  const { 'content-type': type, 'content-length': length, 'content-encoding': encoding } = headers;
  addReplyHeaders(call, { 'x-content-type-options': 'nosniff' });
  const answer: GatewayEvent = {
    type: 'answer',
    status,
    headers: {
      'content-type': plainType(type),
      ...(length === undefined ? {} : { 'content-length': length }),
      ...(encoding === undefined ? {} : { 'content-encoding': encoding }),
    },
  };
  return concat(of(answer), bytes.pipe(map((piece): GatewayEvent => ({ type: 'bytes', bytes: piece }))));
}

function plainType(type: string | string[] | undefined): string {
  return typeof type === 'string' &&
    /^(?:application\/(?:x-)?(?:jsonl?|ndjson)|text\/plain|image\/(?!svg)[\w.+-]+)\b/i.test(type)
    ? type
    : 'application/octet-stream';
}

/** Responses and ids that all operations of the demo channel share: delays, error bodies and HTML error pages. */
import { createHash } from 'node:crypto';
import { GatewayError, type ErrorCode, type Upstream, type Call } from 'sluice';
import { errorTable, type Format } from 'sluice/internal';
import { body, Clock, reply } from './reply.ts';

/** Waits. Rejects when the client leaves first. */
export async function pause(call: Call, milliseconds: number): Promise<void> {
  if (milliseconds <= 0) return;
  const clock = new Clock(call);
  await clock.wait(milliseconds);
  if (clock.stopped)
    throw new GatewayError('client_closed_request', 'The client left before the upstream responded.');
  clock.stop();
}

/** Returns an error response in the client's format. */
export function refusal(call: Call, format: Format, error: GatewayError): Upstream {
  const { status, headers, body: envelope } = format.errorReply(error, requestId(call));
  return reply(
    call,
    status,
    { 'content-type': 'application/json', ...headers },
    body(JSON.stringify(envelope)),
  );
}

/** Returns an HTML page with an error status, as a failing reverse proxy sends it. */
export function page(call: Call, status: number): Upstream {
  const text = `<html><head><title>${status}</title></head><body><h1>This is not an API</h1></body></html>`;
  return reply(call, status, { 'content-type': 'text/html' }, body(text));
}

const errorCodes = Object.keys(errorTable).filter((name): name is ErrorCode => name in errorTable);

/** Returns the failure that a provider would report with this status, for `!status=N`. */
export function failure(status: number, retryAfter: number | undefined): GatewayError {
  if (status < 400 || status > 599)
    return new GatewayError('invalid_value', "The demo's !status takes 400 to 599.");
  const code = errorCodes.find((name) => errorTable[name].status === status);
  return new GatewayError(
    code ?? (status < 500 ? 'invalid_request' : 'internal_error'),
    `The demo answers ${status}, as you asked.`,
    {
      status,
      ...(retryAfter === undefined ? {} : { retryAfter }),
    },
  );
}

/** Returns the id of an answer: the same for the same call. */
export function answerId(call: Call): string {
  return `demo${createHash('sha256').update(call.id).digest('hex').slice(0, 20)}`;
}

/** Returns the id under which the demo would log a call. */
export function requestId(call: Call): string {
  return `req_demo${createHash('sha256').update(`${call.id} request`).digest('hex').slice(0, 16)}`;
}

/** Sends the several requests that one call needs at a provider, and polls a provider's job until it ends. */
import { of } from 'rxjs';
import {
  gathered,
  GatewayError,
  wholeBytes,
  parseObject,
  toGatewayError,
  type JsonObject,
  type Upstream,
  type UpstreamRequest,
  type Call,
  type ChannelParts,
} from 'sluice';
import { accountOf, type Call as WholeCall } from 'sluice/internal';

/** Sends one request, as a channel does. */
type Open = ChannelParts['open'];

/** Polling interval: first one in milliseconds, growth factor, and longest one in milliseconds. */
const firstPause = 250;
const growth = 1.4;
const longestPause = 4_000;

/** Maximum number of consecutive transient failures while a job is polled. */
const mostFailures = 4;

/** Response of a provider that is read completely before the client gets a response. */
export interface Step extends Pick<Upstream, 'status' | 'headers'> {
  readonly bytes: Buffer;
  /** Undefined where the bytes are no JSON object. */
  readonly body: JsonObject | undefined;
}

/** Returns true for a step that succeeded. The response of one that failed goes to the client's format unchanged: {@link answerOf}. */
export function hasSucceeded(step: Step): step is Step & { readonly body: JsonObject } {
  return step.status < 300 && step.body !== undefined;
}

/** Returns another request of the same call. Default: a GET without a body. */
export function stepOf(
  { operation, format, model }: UpstreamRequest,
  step: Pick<UpstreamRequest, 'path'> & Partial<UpstreamRequest>,
): UpstreamRequest {
  const method = step.body === undefined ? 'GET' : 'POST';
  return { operation, format, model, stream: false, query: {}, headers: {}, method, body: '', ...step };
}

/** Sends one of several requests of a call, and reads its response whole. Rejects with GatewayError, also when the call ends first. */
export async function requestWhole(call: Call, open: Open, request: UpstreamRequest): Promise<Step> {
  const { status, headers, bytes } = await open(call, request);
  // `gathered` rejects where the call ends first.
  const [whole = Buffer.alloc(0)] = await gathered(call, bytes.pipe(wholeBytes()));
  return { status, headers, bytes: whole, body: parseObject(whole.toString()) };
}

/**
 * Does the same as {@link requestWhole} for a request that costs nothing, such as an upload or a question about a job. A client who leaves pays for
 * other requests that have reached a provider, but not for this one.
 */
export async function requestFree(call: Call, open: Open, request: UpstreamRequest): Promise<Step> {
  const step = await requestWhole(call, open, request);
  if (step.status < 400) accountOf(call as WholeCall).attempts.reached(-1);
  return step;
}

/** Returns the response of a step as that of the whole call. */
export function answerOf({ status, headers, bytes }: Step, body?: JsonObject): Upstream {
  return { status, headers, bytes: of(body === undefined ? bytes : Buffer.from(JSON.stringify(body))) };
}

/**
 * Polls a job until `isRunning` is false for a response, and returns that response. Rejects when the provider returns an error, and with a
 * GatewayError when the call ends. The timeouts are those of the call.
 */
export async function pollUntilDone(
  call: Call,
  open: Open,
  question: UpstreamRequest,
  isRunning: (body: JsonObject) => boolean,
): Promise<Step> {
  let failures = 0;
  for (let pause = firstPause; ; pause = Math.min(longestPause, pause * growth)) {
    // oxlint-disable-next-line no-await-in-loop -- each question waits for the answer before it
    await waited(call, pause);
    // oxlint-disable-next-line no-await-in-loop -- as above
    const step = await requestFree(call, open, question).catch((error: unknown) => {
      const failure = toGatewayError(error);
      if (!failure.retryable || failures >= mostFailures) throw failure;
      return undefined;
    });
    if (step !== undefined && !passes(step)) {
      if (step.body === undefined || step.status >= 300 || !isRunning(step.body)) return step;
      failures = 0;
    } else if ((failures += 1) > mostFailures && step !== undefined) return step;
  }
}

/** Returns true for a response without information about the job, which still runs. */
function passes({ status }: Step): boolean {
  return status === 429 || status >= 500;
}

/** Waits for some milliseconds. Rejects when the call ends before. */
function waited(call: Call, milliseconds: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      forget();
      resolve();
    }, milliseconds);
    const forget = call.onEnd(() => {
      clearTimeout(timer);
      reject(gone());
    });
  });
}

function gone(): GatewayError {
  return new GatewayError('client_closed_request', 'The call ended before it had a response.');
}

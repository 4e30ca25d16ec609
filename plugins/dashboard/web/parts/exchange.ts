import { createParser } from 'eventsource-parser';
import type { Json, Piece, Wire, WireRequest } from './wires.ts';

/** How an answer stands while it comes in. */
export interface Answer {
  readonly state: 'running' | 'done' | 'failed' | 'stopped';
  readonly status: number | undefined;
  /** `name: value` lines. */
  readonly headers: string;
  /** Under which the call is in the usage log. */
  readonly requestId: string | undefined;
  /** Exactly what came, up to a limit. */
  readonly wire: string;
  readonly text: string;
  readonly thinking: string;
  readonly usage: unknown;
  readonly error: string | undefined;
  /** Milliseconds. */
  readonly firstMs: number | undefined;
  readonly ms: number;
}

/** The most characters of an answer's wire that are kept for showing. */
const wireLimit = 400_000;

/** The most characters of one event: a longer one is nothing that could be shown. */
const maxBufferSize = 64 * 1024 * 1024;

/** Sends a request and tells how the answer stands, at most once per picture of the screen, until it has ended. Never rejects. */
export async function exchange(
  wire: Wire,
  request: WireRequest,
  key: string,
  signal: AbortSignal,
  tell: (answer: Answer) => void,
): Promise<void> {
  const started = performance.now();
  let answer: Answer = {
    state: 'running',
    status: undefined,
    headers: '',
    requestId: undefined,
    wire: '',
    text: '',
    thinking: '',
    usage: undefined,
    error: undefined,
    firstMs: undefined,
    ms: 0,
  };
  let drawing = 0;
  const change = (changes: Partial<Answer>): void => {
    answer = { ...answer, ...changes, ms: performance.now() - started };
    if (answer.state !== 'running') {
      cancelAnimationFrame(drawing);
      tell(answer);
    } else if (drawing === 0) {
      drawing = requestAnimationFrame(() => {
        drawing = 0;
        tell(answer);
      });
    }
  };
  const add = ({ text = '', thinking = '', usage, error }: Piece): void =>
    change({
      text: answer.text + text,
      thinking: answer.thinking + thinking,
      ...(usage !== undefined && { usage }),
      ...(error !== undefined && { error }),
    });
  try {
    const response = await fetch(request.path, {
      method: 'POST',
      // The key alone says who asks: what the dashboard may do is no business of a call.
      credentials: 'omit',
      headers: { 'content-type': 'application/json', ...request.headers, ...wire.authorize(key) },
      body: JSON.stringify(request.body),
      signal,
    });
    change({
      status: response.status,
      requestId: response.headers.get('x-request-id') ?? undefined,
      headers: [...response.headers].map((pair) => pair.join(': ')).join('\n'),
    });
    const streams = response.headers.get('content-type')?.startsWith('text/event-stream') === true;
    const take = (text: string): void => {
      const value = parse(text);
      if (value !== undefined) add(wire.read(value));
    };
    const events = streams ? createParser({ maxBufferSize, onEvent: ({ data }) => take(data) }) : undefined;
    let whole = '';
    if (response.body !== null) {
      for await (const text of texts(response.body)) {
        if (events === undefined) whole += text;
        else events.feed(text);
        change({
          wire: (answer.wire + text).slice(0, wireLimit),
          firstMs: answer.firstMs ?? performance.now() - started,
        });
      }
    }
    if (events === undefined) take(whole);
    const failed = !response.ok || answer.error !== undefined;
    change({
      state: failed ? 'failed' : 'done',
      ...(failed && answer.error === undefined && { error: `The gateway answered ${response.status}.` }),
    });
  } catch (error) {
    if (signal.aborted) change({ state: 'stopped' });
    else
      change({
        state: 'failed',
        error: `The connection broke: ${error instanceof Error ? error.message : ''}`,
      });
  }
}

/** The body as text, piece by piece. */
async function* texts(body: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<string> {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    yield value;
  }
}

function parse(text: string): Json | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Json) : undefined;
  } catch {
    return undefined;
  }
}

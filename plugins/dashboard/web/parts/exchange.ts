/** Sends a request of the playground, and reports the response while it comes in, with its first bytes as they were sent. */
import { createParser } from 'eventsource-parser';
import type { Json, Piece, Wire, WireRequest } from './wires.ts';

/** State of a response while it arrives. */
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

/** Sends a request and reports the state of the response until it has ended, at most once per animation frame. Never rejects. */
export async function exchange(
  wire: Wire,
  request: WireRequest,
  key: string,
  signal: AbortSignal,
  publish: (answer: Answer) => void,
): Promise<void> {
  const live = new LiveAnswer(publish);
  try {
    const response = await fetch(request.path, {
      method: 'POST',
      // Sent without cookies, because a call is authorized by its API key alone.
      credentials: 'omit',
      headers: { 'content-type': 'application/json', ...request.headers, ...wire.authorize(key) },
      body: JSON.stringify(request.body),
      signal,
    });
    live.change({
      status: response.status,
      requestId: response.headers.get('x-request-id') ?? undefined,
      headers: [...response.headers].map((pair) => pair.join(': ')).join('\n'),
    });
    const streams = response.headers.get('content-type')?.startsWith('text/event-stream') === true;
    const take = (text: string): void => {
      const value = parse(text);
      if (value !== undefined) live.add(wire.read(value));
    };
    const events = streams ? createParser({ maxBufferSize, onEvent: ({ data }) => take(data) }) : undefined;
    let whole = '';
    if (response.body !== null) {
      for await (const text of texts(response.body)) {
        if (events === undefined) whole += text;
        else events.feed(text);
        live.change({
          wire: (live.answer.wire + text).slice(0, wireLimit),
          firstMs: live.answer.firstMs ?? live.ms,
        });
      }
    }
    if (events === undefined) take(whole);
    const failed = !response.ok || live.answer.error !== undefined;
    live.change({
      state: failed ? 'failed' : 'done',
      ...(failed && live.answer.error === undefined && { error: `The gateway answered ${response.status}.` }),
    });
  } catch (error) {
    if (signal.aborted) live.change({ state: 'stopped' });
    else
      live.change({
        state: 'failed',
        error: `The connection broke: ${error instanceof Error ? error.message : ''}`,
      });
  }
}

/** An arriving response, with the callback for its state. */
class LiveAnswer {
  answer: Answer = {
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
  readonly #publish: (answer: Answer) => void;
  readonly #started = performance.now();
  #drawing = 0;

  constructor(tell: (answer: Answer) => void) {
    this.#publish = tell;
  }

  /** Milliseconds since the request was sent. */
  get ms(): number {
    return performance.now() - this.#started;
  }

  change(changes: Partial<Answer>): void {
    this.answer = { ...this.answer, ...changes, ms: this.ms };
    if (this.answer.state !== 'running') {
      cancelAnimationFrame(this.#drawing);
      this.#publish(this.answer);
    } else if (this.#drawing === 0) {
      this.#drawing = requestAnimationFrame(() => {
        this.#drawing = 0;
        this.#publish(this.answer);
      });
    }
  }

  add({ text = '', thinking = '', usage, error }: Piece): void {
    this.change({
      text: this.answer.text + text,
      thinking: this.answer.thinking + thinking,
      ...(usage !== undefined && { usage }),
      ...(error !== undefined && { error }),
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

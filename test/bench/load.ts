/** The clients: sends requests as it is told, checks every reply, and counts. */
import { Pool, type Dispatcher } from 'undici';
import { answering } from './answering.ts';
import { word } from './replies.ts';

/** One request, sent many times. */
export interface Shot {
  readonly url: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** As many whole replies as fit in the time, with so many requests open at once. */
export interface WholeLoad {
  readonly shot: Shot;
  readonly concurrency: number;
  readonly seconds: number;
  /** A reply shorter than this is wrong. */
  readonly atLeast: number;
}

/** Streams that begin evenly over a time and are read to their end. */
export interface StreamLoad {
  readonly shot: Shot;
  readonly streams: number;
  /** Milliseconds. */
  readonly spread: number;
  /** Deltas that each stream must have, and what it must end with. */
  readonly chunks: number;
  readonly lastWords: string;
}

/** What was done: requests or chunks, and what was wrong with the others. */
export interface Done {
  readonly count: number;
  readonly failures: readonly string[];
}

const pools = new Map<string, Pool>();

function poolOf(url: string): Pool {
  let pool = pools.get(url);
  if (pool === undefined) {
    pool = new Pool(url, { headersTimeout: 30_000, bodyTimeout: 30_000 });
    pools.set(url, pool);
  }
  return pool;
}

/** Sends it; `onChunk` sees the reply as it comes. Resolves at the end of the reply, rejects when there is no good one. */
function send(
  { url, path, headers, body }: Shot,
  onChunk: (chunk: Buffer) => void,
  onController?: (controller: Dispatcher.DispatchController) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let status = 0;
    let problem = '';
    poolOf(url).dispatch(
      { path, method: 'POST', headers, body },
      {
        onRequestStart: (controller) => onController?.(controller),
        onResponseStart(_controller, code) {
          status = code;
        },
        onResponseData(_controller, chunk) {
          if (status === 200) onChunk(chunk);
          else problem += chunk.toString();
        },
        onResponseEnd() {
          if (status === 200) resolve();
          else reject(new Error(`status ${status}: ${problem.slice(0, 200)}`));
        },
        onResponseError: (_controller, error) => reject(error),
      },
    );
  });
}

/** Texts that a format says again at the end of a stream: of the part, its end, the item, the response. */
const repeated = 4;

function occurrences(text: string): number {
  return text.split(word).length - 1;
}

async function whole({ shot, concurrency, seconds, atLeast }: WholeLoad): Promise<Done> {
  const failures: string[] = [];
  let count = 0;
  const end = performance.now() + seconds * 1000;
  const client = async (): Promise<void> => {
    while (performance.now() < end) {
      let length = 0;
      try {
        await send(shot, (chunk) => {
          length += chunk.length;
        });
        count += 1;
        if (length < atLeast) failures.push(`a reply of ${length} bytes`);
      } catch (error) {
        failures.push(String(error));
        if (failures.length > 100) return;
      }
    }
  };
  await Promise.all(Array.from({ length: concurrency }, client));
  return { count, failures };
}

async function streams({ shot, streams: number, spread, chunks, lastWords }: StreamLoad): Promise<Done> {
  const failures: string[] = [];
  let count = 0;
  const client = async (_: unknown, index: number): Promise<void> => {
    await new Promise((go) => setTimeout(go, (spread * index) / number));
    let text = '';
    try {
      await send(shot, (chunk) => {
        text += chunk.toString();
      });
      const seen = occurrences(text);
      count += chunks;
      if (seen < chunks || seen > chunks + repeated || !new RegExp(lastWords).test(text))
        failures.push(`a stream of ${seen} chunks that ends with ${JSON.stringify(text.slice(-60))}`);
    } catch (error) {
      failures.push(String(error));
    }
  };
  await Promise.all(Array.from({ length: number }, client));
  return { count, failures };
}

let open: Dispatcher.DispatchController[] = [];
let openChunks = 0;
let openFailures: string[] = [];
const released = new Error('The streams are closed.');

/** Opens streams that never end and resolves when each has sent something. */
async function openStreams({
  shot,
  streams: number,
}: {
  readonly shot: Shot;
  readonly streams: number;
}): Promise<void> {
  const first = Array.from(
    { length: number },
    (_, index) =>
      new Promise<void>((begun) => {
        const begin = (): void => {
          send(
            shot,
            (chunk) => {
              openChunks += occurrences(chunk.toString());
              begun();
            },
            (controller) => open.push(controller),
          ).catch((error: unknown) => {
            if (error !== released) openFailures.push(String(error));
            begun();
          });
        };
        setTimeout(begin, index);
      }),
  );
  await Promise.all(first);
}

/** Chunks of open streams since this was last asked. */
function counted(): Done {
  const done: Done = { count: openChunks, failures: openFailures };
  openChunks = 0;
  openFailures = [];
  return done;
}

function closeStreams(): void {
  for (const controller of open) controller.abort(released);
  open = [];
}

answering({ whole, streams, openStreams, counted, closeStreams }, {});

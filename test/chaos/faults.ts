import type { ServerResponse } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { constants, gzipSync } from 'node:zlib';
import type { Dialect } from './dialects.ts';

export type Mode = 'whole' | 'stream';

/** An answer that a fault spoils. */
export interface Reply {
  readonly response: ServerResponse;
  readonly dialect: Dialect;
  readonly stream: boolean;
  /** The sound answer, frame by frame; a whole one is a single piece. */
  readonly pieces: readonly string[];
  /** The sound answer's beginning, up to its second word: half of a whole one. */
  readonly early: Buffer;
  /** Frames before the first text, which only open the response. */
  readonly opening: string;
  readonly word: string;
}

/**
 * When it strikes: `before` anything of the reply has come, between the frames that open it and its first word (`opened`), `after` two
 * words. `sound`: the answer is odd but right. `endless`: it is right and never ends.
 */
export type Moment = 'sound' | 'before' | 'opened' | 'after' | 'endless';

/** One way in which a provider misbehaves. */
export interface Fault {
  readonly name: string;
  readonly moment: Moment;
  readonly modes: readonly Mode[];
  /** Allowed outcomes for the client when no other channel responds and nothing was sent yet. */
  readonly statuses: readonly number[];
  /** Response of the provider; absent when its port is closed. */
  readonly play?: (reply: Reply) => void | Promise<void>;
  /** True when the gateway detects the fault only after a timeout. */
  readonly slow?: boolean;
  /** It moves so many bytes that few are sent. */
  readonly heavy?: boolean;
  /**
   * The provider goes on when its answer is over. A client of its own format gets its words as they came, the wrong ones too; in one format
   * nothing tells the end, so that translated it may be an answer that breaks.
   */
  readonly verbatim?: boolean;
}

const both: readonly Mode[] = ['whole', 'stream'];
const streamed: readonly Mode[] = ['stream'];
const json = { 'content-type': 'application/json' };
const events = { 'content-type': 'text/event-stream' };
const sent = 15;
const giant = 64 * 1024 * 1024 + 1;

type Strike = (reply: Reply) => void | Promise<void>;

const headersOf = ({ stream }: Reply): Readonly<Record<string, string>> => (stream ? events : json);
const whole = ({ pieces }: Reply): string => pieces.join('');
const sendHead = (reply: Reply, more: Readonly<Record<string, string | number>> = {}): void => {
  if (!reply.response.headersSent) reply.response.writeHead(200, { ...headersOf(reply), ...more });
};

/** The answer is right up to its second word, and that has been read, before something strikes. */
const after =
  (strike: Strike): Strike =>
  async (reply) => {
    sendHead(reply);
    reply.response.write(reply.early);
    await pause(sent);
    await strike(reply);
  };

const status =
  (code: number, body: (reply: Reply) => string, headers: Readonly<Record<string, string>> = json): Strike =>
  (reply) =>
    void reply.response.writeHead(code, headers).end(body(reply));
const says = (message: string) => (): string =>
  JSON.stringify({ error: { message, type: 'server_error', code: null } });
const page = (): string => '<!doctype html><html><body><h1>Bad gateway</h1></body></html>';

const reset: Strike = ({ response }) => void response.socket?.resetAndDestroy();
const hangUp: Strike = ({ response }) => void response.socket?.destroy();
const silence: Strike = (reply) => {
  sendHead(reply);
  reply.response.flushHeaders();
};
const finish: Strike = ({ response }) => void response.end();
const errorEvent: Strike = (reply) => {
  sendHead(reply);
  reply.response.end(reply.dialect.errorFrame('overloaded'));
};
const halfFrame: Strike = (reply) => {
  sendHead(reply);
  const frame = Buffer.from(reply.word);
  reply.response.end(frame.subarray(0, Math.floor(frame.length / 2)));
};
const garbage: Strike = (reply) => {
  sendHead(reply);
  reply.response.end('data: {"choices":[{"delta": oops\n\n');
};
const chunkedCut: Strike = (reply) => {
  sendHead(reply);
  reply.response.flushHeaders();
  reply.response.socket?.end('400\r\ndata: {"half');
};

function drained(response: ServerResponse): Promise<void> {
  return new Promise((go) => {
    const done = (): void => {
      response.off('drain', done).off('close', done);
      go();
    };
    response.on('drain', done).on('close', done);
  });
}

async function every(response: ServerResponse, milliseconds: number, text: string): Promise<void> {
  while (!response.destroyed) {
    if (!response.write(text) && !response.destroyed) await drained(response);
    await pause(milliseconds);
  }
}

const endless: Strike = (reply) => {
  sendHead(reply);
  reply.response.write(reply.early);
  return every(reply.response, 3, reply.word);
};

async function giantLine(reply: Reply): Promise<void> {
  const { response } = reply;
  sendHead(reply);
  response.write('data: {"choices":[{"index":0,"delta":{"content":"');
  const block = Buffer.alloc(1024 * 1024, 'x');
  for (let left = giant; left > 0 && !response.destroyed; left -= block.length) {
    if (!response.write(block) && !response.destroyed) await drained(response);
  }
  response.end();
}

async function bytewise(reply: Reply, wait: number): Promise<void> {
  const { response } = reply;
  response.socket?.setNoDelay(true);
  sendHead(reply);
  const bytes = Buffer.from(whole(reply));
  const step = Math.max(1, Math.ceil(bytes.length / 1500));
  for (let at = 0; at < bytes.length && !response.destroyed; at += step) {
    response.write(bytes.subarray(at, at + step));
    if (at % (step * 16) === 0) await pause(wait);
  }
  response.end();
}

const respelled =
  (newline: (index: number) => string): Strike =>
  (reply) => {
    sendHead(reply);
    let count = 0;
    reply.response.end(whole(reply).replaceAll('\n', () => newline((count += 1))));
  };

function sound(name: string, modes: readonly Mode[], play: Strike, more: Partial<Fault> = {}): Fault {
  return { name, moment: 'sound', modes, statuses: [], play, ...more };
}

function before(
  name: string,
  statuses: readonly number[],
  play: Strike | undefined,
  { modes = both, ...more }: Partial<Fault> = {},
): Fault {
  return { name, moment: 'before', modes, statuses, ...(play === undefined ? {} : { play }), ...more };
}

function later(name: string, statuses: readonly number[], strike: Strike, more: Partial<Fault> = {}): Fault {
  return { name: `${name}-after`, moment: 'after', modes: both, statuses, play: after(strike), ...more };
}

/** Every way in which a provider may misbehave, and some in which it is only odd. */
export const faults: readonly Fault[] = [
  sound('plain', both, (reply) => {
    sendHead(reply);
    reply.response.end(whole(reply));
  }),
  sound('paced', streamed, async (reply) => {
    sendHead(reply);
    for (const piece of reply.pieces) {
      if (reply.response.destroyed) return;
      reply.response.write(piece);
      if (Math.random() < 0.2) await pause(2);
    }
    reply.response.end();
  }),
  sound('byte-by-byte', both, (reply) => bytewise(reply, 1)),
  sound('late-headers', both, async (reply) => {
    await pause(400);
    sendHead(reply);
    reply.response.end(whole(reply));
  }),
  sound('late-first-byte', both, async (reply) => {
    sendHead(reply);
    reply.response.flushHeaders();
    await pause(400);
    reply.response.end(whole(reply));
  }),
  sound('wrong-content-type', both, (reply) => {
    reply.response.writeHead(200, { 'content-type': 'text/plain' }).end(whole(reply));
  }),
  sound('other-content-type', both, (reply) => {
    reply.response.writeHead(200, reply.stream ? json : events).end(whole(reply));
  }),
  sound('gzip', both, (reply) => {
    reply.response
      .writeHead(200, { ...headersOf(reply), 'content-encoding': 'gzip' })
      .end(gzipSync(whole(reply)));
  }),
  sound('content-length', both, (reply) => {
    const bytes = Buffer.from(whole(reply));
    sendHead(reply, { 'content-length': bytes.length });
    reply.response.end(bytes);
  }),
  sound('connection-close', both, (reply) => {
    sendHead(reply, { connection: 'close' });
    reply.response.end(whole(reply));
  }),
  sound(
    'crlf',
    streamed,
    respelled(() => '\r\n'),
  ),
  sound(
    'cr',
    streamed,
    respelled(() => '\r'),
  ),
  sound(
    'mixed-newlines',
    streamed,
    respelled((index) => (index % 3 === 0 ? '\n' : '\r\n')),
  ),
  sound('comments-between', streamed, (reply) => {
    sendHead(reply);
    reply.response.end(`: hi\n\n${reply.pieces.join(': still here\n\n')}`);
  }),
  sound('no-blank-line-at-the-end', streamed, (reply) => {
    sendHead(reply);
    reply.response.end(whole(reply).replace(/\n+$/, ''));
  }),
  sound(
    'terminal-twice',
    streamed,
    (reply) => {
      sendHead(reply);
      reply.response.end(whole(reply) + (reply.pieces.at(-1) ?? ''));
    },
    { verbatim: true },
  ),
  sound(
    'words-after-the-end',
    streamed,
    (reply) => {
      sendHead(reply);
      reply.response.end(whole(reply) + reply.word);
    },
    { verbatim: true },
  ),

  before('refused', [502], undefined),
  before('reset', [502], reset),
  before('hang-up', [502], hangUp),
  before(
    '429',
    [429],
    status(429, ({ dialect }) => JSON.stringify(dialect.errorBody('rate-limit'))),
  ),
  before(
    '429-with-retry-after',
    [429],
    status(429, ({ dialect }) => JSON.stringify(dialect.errorBody('rate-limit')), {
      ...json,
      'retry-after': '1',
    }),
  ),
  before('500', [502], status(500, says('boom'))),
  before('502', [502], status(502, page, { 'content-type': 'text/html' })),
  before('503', [503], status(503, says('down'))),
  before(
    '529',
    [503],
    status(529, ({ dialect }) => JSON.stringify(dialect.errorBody('overloaded'))),
  ),
  before('401', [502, 503], status(401, says('bad key sk-upstream'))),
  before('404', [503], status(404, says('no such model'))),
  before(
    'error-under-200',
    [503],
    status(200, ({ dialect }) => JSON.stringify(dialect.errorBody('overloaded'))),
  ),
  before('error-event', [503], errorEvent, { modes: streamed }),
  before(
    'error-event-behind-comments',
    [503],
    async (reply) => {
      sendHead(reply);
      reply.response.write(': waiting\n\n: waiting\n\n');
      await pause(sent);
      errorEvent(reply);
    },
    { modes: streamed },
  ),
  before('web-page', [502], status(200, page, { 'content-type': 'text/html' })),
  before(
    'no-json',
    [502],
    status(200, () => 'Sorry, not today.'),
  ),
  before('half-frame', [502], halfFrame, { modes: streamed }),
  before('silence', [504], () => {}, { slow: true }),
  before('silence-behind-headers', [504], silence, { slow: true }),
  before('empty-body', [502], (reply) => {
    sendHead(reply, { 'content-length': 0 });
    reply.response.end();
  }),
  before('empty-stream', [502], (reply) => {
    sendHead(reply);
    reply.response.flushHeaders();
    reply.response.end();
  }),
  before('204', [502], ({ response }) => void response.writeHead(204).end()),
  before('redirect', [502], ({ response }) => void response.writeHead(302, { location: '/elsewhere' }).end()),
  before(
    'comments-only',
    [502],
    (reply) => {
      sendHead(reply);
      reply.response.end(': hi\n\n: hi\n\n: hi\n\n');
    },
    { modes: streamed },
  ),
  before(
    'comments-for-ever',
    [504],
    (reply) => {
      sendHead(reply);
      return every(reply.response, 100, ': hi\n\n');
    },
    { modes: streamed, slow: true },
  ),
  before('chunked-cut', [502], chunkedCut),
  before('longer-length', [502], (reply) => {
    sendHead(reply, { 'content-length': 5000 });
    reply.response.flushHeaders();
    setTimeout(() => reply.response.socket?.end(), sent);
  }),
  before('cut-gzip', [502], (reply) => {
    sendHead(reply, { 'content-encoding': 'gzip' });
    reply.response.end(gzipSync(whole(reply)).subarray(0, 12));
  }),
  before('giant-line', [502, 504], giantLine, { modes: streamed, heavy: true }),

  {
    name: 'cut-before-the-first-word',
    moment: 'opened',
    modes: streamed,
    statuses: [502],
    play: async (reply) => {
      sendHead(reply);
      if (reply.opening !== '') reply.response.write(reply.opening);
      await pause(sent);
      reply.response.end();
    },
  },

  later('reset', [502], reset),
  later('hang-up', [502], hangUp),
  later('end', [502], finish),
  later('error-event', [503], errorEvent, { modes: streamed }),
  later('garbage', [502], garbage, { modes: streamed }),
  later('half-frame', [502], halfFrame, { modes: streamed }),
  later('silence', [504], silence, { slow: true }),
  later('chunked-cut', [502], chunkedCut),
  later('giant-line', [502, 504], giantLine, { modes: streamed, heavy: true }),
  {
    name: 'longer-length-after',
    moment: 'after',
    modes: both,
    statuses: [502],
    play: async (reply) => {
      sendHead(reply, { 'content-length': Buffer.byteLength(whole(reply)) + 5000 });
      reply.response.write(reply.early);
      await pause(sent);
      reply.response.socket?.end();
    },
  },
  {
    name: 'cut-gzip-after',
    moment: 'after',
    modes: both,
    statuses: [502],
    play: async (reply) => {
      sendHead(reply, { 'content-encoding': 'gzip' });
      reply.response.write(gzipSync(reply.early, { finishFlush: constants.Z_SYNC_FLUSH }));
      await pause(sent);
      reply.response.end();
    },
  },
  { name: 'endless', moment: 'endless', modes: streamed, statuses: [], play: endless },
];

/** A fault by its name. Throws when there is none. */
export function faultNamed(name: string): Fault {
  const fault = faults.find((one) => one.name === name);
  if (fault === undefined) throw new Error(`There is no fault "${name}".`);
  return fault;
}

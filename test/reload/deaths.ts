import { existsSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { setTimeout as pass } from 'node:timers/promises';
import { configWith, logIn, operate, type OperatedGateway } from './gateway.ts';

/** Workers that are killed one after the other under new connections. */
export interface DeathPlan {
  readonly rounds: number;
  /** Members of the config, `workers` and `spareWorker` among them. */
  readonly members: string;
  /** Number of workers that serve or are spare. */
  readonly ready: number;
  /** Connections that are opened in each round, one after the other. */
  readonly connections: number;
  /** Time after which a connection without an answer counts as hung, in milliseconds. */
  readonly patience: number;
  readonly print: (line: string) => void;
}

/** Outcome of the connections. */
export interface DeathResult {
  readonly rounds: number;
  readonly answered: number;
  /** Connections that could not be opened. */
  readonly refused: number;
  /** Connections that were open and ended without an answer: the worker that was killed may have had them. */
  readonly cut: number;
  /** The largest number of such connections in one round. */
  readonly mostCut: number;
  /** Connections that had neither an answer nor an end in time. */
  readonly hung: number;
  /** The longest time until an answer, in milliseconds. */
  readonly slowest: number;
}

type End = 'answered' | 'refused' | 'cut' | 'hung';

interface Ended {
  readonly end: End;
  readonly time: number;
}

/** Opens a connection of its own for one request. Resolves with what became of it. */
function connectAndWait(url: string, patience: number, open: Set<Socket>): Promise<Ended> {
  const { hostname, port } = new URL(url);
  const began = performance.now();
  return new Promise((resolve) => {
    let isOpen = false;
    const socket = connect(Number(port), hostname);
    open.add(socket);
    const done = (end: End): void => {
      clearTimeout(timer);
      open.delete(socket);
      socket.destroy();
      resolve({ end, time: performance.now() - began });
    };
    const timer = setTimeout(() => done('hung'), patience);
    socket.once('connect', () => {
      isOpen = true;
      socket.write('GET /healthz HTTP/1.1\r\nhost: gateway\r\nconnection: close\r\n\r\n');
    });
    socket.once('data', () => done('answered'));
    socket.once('error', () => done(isOpen ? 'cut' : 'refused'));
    socket.once('close', () => done('cut'));
  });
}

/** Kills one worker after the other with `kill -9` while connections are opened, and counts what became of these. */
export async function tryDeaths(plan: DeathPlan): Promise<DeathResult> {
  const { rounds, members, ready, connections, patience, print } = plan;
  const gateway = await operate({
    'gateway.config.mjs': configWith(`${members}, timeouts: { drainDelay: 0 }, channels: [demo()]`),
  });
  const counts: Record<End, number> = { answered: 0, refused: 0, cut: 0, hung: 0 };
  const open = new Set<Socket>();
  let mostCut = 0;
  let slowest = 0;
  try {
    for (let round = 0; round < rounds; round += 1) {
      // oxlint-disable-next-line no-await-in-loop -- one death after the other
      await areReady(gateway, ready);
      const all = gateway.workers();
      const victim = all[round % all.length] ?? 0;
      const attempts: Promise<Ended>[] = [];
      for (let count = 0; count < connections; count += 1) {
        attempts.push(connectAndWait(gateway.url, patience, open));
        // At another place of the work of a worker in each round.
        if (count === Math.floor(connections / 3)) process.kill(victim, 'SIGKILL');
        // oxlint-disable-next-line no-await-in-loop -- connections come all the time
        if (count % 4 === round % 4) await pass(1);
      }
      // oxlint-disable-next-line no-await-in-loop -- as above
      const ends = await Promise.all(attempts);
      for (const { end } of ends) counts[end] += 1;
      const cut = ends.filter(({ end }) => end === 'cut').length;
      mostCut = Math.max(mostCut, cut);
      for (const { end, time } of ends) if (end === 'answered') slowest = Math.max(slowest, time);
      if ((round + 1) % 20 === 0)
        print(
          `${round + 1} workers killed: ${JSON.stringify({ ...counts, mostCut, slowest: Math.round(slowest) })}`,
        );
    }
    return { rounds, ...counts, mostCut, slowest: Math.round(slowest) };
  } finally {
    for (const socket of open) socket.destroy();
    await gateway.end();
  }
}

/** Resolves when so many workers serve or are spare. */
async function areReady(gateway: OperatedGateway, count: number): Promise<void> {
  for (;;) {
    // oxlint-disable-next-line no-await-in-loop -- asked again and again
    const found = await countReady(gateway).catch(() => 0);
    if (hasEnded(gateway)) throw new Error(`The gateway ended: ${gateway.output().slice(-2000)}`);
    if (found >= count) return;
    // oxlint-disable-next-line no-await-in-loop -- as above
    await pass(50);
  }
}

function hasEnded({ pid }: OperatedGateway): boolean {
  return !existsSync(`/proc/${pid}`);
}

async function countReady(gateway: OperatedGateway): Promise<number> {
  const { sendRequest } = await logIn(gateway);
  const { workers } = (await sendRequest('GET', 'status')) as { workers: readonly { state: string }[] };
  return workers.filter(({ state }) => state === 'serving' || state === 'spare').length;
}

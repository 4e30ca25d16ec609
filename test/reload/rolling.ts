import { setTimeout as pass } from 'node:timers/promises';
import { freePort } from '../support/free-port.ts';
import { Balancer, type BalancerFailures } from './balancer.ts';
import { Caller } from './caller.ts';
import { configWith, operate, type OperatedGateway } from './gateway.ts';
import { NumberStream, voices } from './streams.ts';

/** Longer than the time in which two signals count as one key press, in milliseconds. */
const betweenSignals = 700;

/** A rolling restart to try. */
export interface RollingPlan {
  /** Settings of both gateways, such as a shared database; `first` and `second` are theirs alone. */
  readonly members: { readonly first: string; readonly second: string };
  /** Number of restarts of both gateways. */
  readonly rounds: number;
  /** Streams that are open at any time, and clients that make one short call after the other. */
  readonly streams: number;
  readonly callers: number;
  /** Numbers of the longest stream, and milliseconds between two of them. */
  readonly longest: number;
  readonly pace: number;
  /** Milliseconds between two polls of `/readyz`, and of `timeouts.drainDelay`. */
  readonly poll: number;
  readonly drainDelay: number;
  /** End each delay by a second signal as soon as the balancer has noticed the first, so that nothing depends on the speed of the machine. */
  readonly hurries: boolean;
  readonly print: (line: string) => void;
}

/** Result of a rolling restart. */
export interface RollingResult extends BalancerFailures {
  readonly restarts: number;
  readonly exits: readonly (number | string)[];
  readonly calls: number;
  readonly failedCalls: number;
  readonly streams: number;
  /** Streams that did not end complete. */
  readonly brokenStreams: number;
  /** Reasons of failures, a few of them. */
  readonly reasons: readonly string[];
}

/** Restarts two gateways behind a load balancer, one after the other, under load. */
export async function tryRolling(plan: RollingPlan): Promise<RollingResult> {
  const gateways = await Promise.all(
    [plan.members.first, plan.members.second].map(
      async (members) => new Rolled(await freePort(), members, plan),
    ),
  );
  const balancer = new Balancer(
    gateways.map(({ url }) => url),
    plan.poll,
  );
  try {
    // One makes the tables that both may share.
    for (const gateway of gateways) await gateway.start(balancer);
    const url = await balancer.listen();
    const callers = Array.from({ length: plan.callers }, (_, index) => new Caller({ url }, index % 4 > 0));
    const streaming = new Streaming(url, plan);
    const exits: (number | string)[] = [];
    for (let round = 0; round < plan.rounds; round += 1)
      for (const gateway of gateways) exits.push(await gateway.restart(balancer));
    const ends = await streaming.stop();
    const outcomes = await Promise.all(callers.map((caller) => caller.stop()));
    const failures = outcomes.flatMap((outcome) => outcome.failures);
    return {
      ...balancer.failures,
      restarts: exits.length,
      exits,
      calls: outcomes.reduce((sum, { calls }) => sum + calls, 0),
      failedCalls: failures.length,
      streams: ends.length,
      brokenStreams: ends.filter((why) => why !== '').length,
      reasons: [...ends.filter((why) => why !== ''), ...failures].slice(0, 10),
    };
  } finally {
    balancer.close();
    await Promise.all(gateways.map((gateway) => gateway.end()));
  }
}

/** A gateway that is restarted on its port. */
class Rolled {
  readonly url: string;
  readonly #config: string;
  readonly #hurries: boolean;
  readonly #print: (line: string) => void;
  #running: OperatedGateway | undefined;

  constructor(port: number, members: string, { pace, drainDelay, hurries, print }: RollingPlan) {
    this.url = `http://127.0.0.1:${port}`;
    this.#hurries = hurries;
    this.#print = print;
    this.#config = configWith(
      `listen: { port: ${port} }, timeouts: { drainDelay: ${drainDelay}, drain: 600_000 }, channels: [demo({ pace: ${pace} })], ${members}`,
    );
  }

  /** Resolves when the balancer has found it ready. */
  async start(balancer: Balancer): Promise<void> {
    this.#running = await operate({ 'gateway.config.mjs': this.#config });
    while (!balancer.isReady(this.url)) await pass(20);
    this.#print(`${this.url} is ready`);
  }

  async restart(balancer: Balancer): Promise<number | string> {
    this.#running?.signal('SIGTERM');
    if (this.#hurries) await this.#hurry(balancer);
    const exit = (await this.#running?.exited) ?? 'not started';
    this.#print(`${this.url} ended with ${exit}`);
    if (exit !== 0) this.#print(this.#running?.output().slice(-4_000) ?? '');
    await this.#running?.end();
    await this.start(balancer);
    return exit;
  }

  async #hurry(balancer: Balancer): Promise<void> {
    while (balancer.isReady(this.url)) await pass(20);
    await pass(betweenSignals);
    // Connections are accepted in order: those that the balancer had begun before are accepted too.
    await (await fetch(`${this.url}/healthz`, { headers: { connection: 'close' } })).text();
    this.#running?.signal('SIGTERM');
  }

  async end(): Promise<void> {
    await this.#running?.end();
  }
}

/** Streams in all formats, each followed by another one until it is told to stop. */
class Streaming {
  readonly #lines: readonly Promise<void>[];
  readonly #stopping = new AbortController();
  readonly #ends: string[] = [];

  constructor(url: string, { streams, longest }: RollingPlan) {
    this.#lines = Array.from({ length: streams }, (_, index) => this.#run(url, index, longest));
  }

  /** Why each stream that has ended was not complete; empty for those that were. */
  async stop(): Promise<readonly string[]> {
    this.#stopping.abort();
    await Promise.all(this.#lines);
    return this.#ends;
  }

  async #run(url: string, index: number, longest: number): Promise<void> {
    for (
      let count = 10 + ((index * 7) % longest);
      !this.#stopping.signal.aborted;
      count = 10 + ((count * 3) % longest)
    ) {
      const stream = new NumberStream(url, voices[index % voices.length] ?? voices[0]!, count);
      // oxlint-disable-next-line no-await-in-loop -- a client reads one stream after the other
      const end = await stream.end;
      this.#ends.push(end === 'complete' ? '' : stream.why || end);
    }
  }
}

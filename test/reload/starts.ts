import { key, operate, configWith, type OperatedGateway } from './gateway.ts';

/** Starts of gateways to try. */
export interface StartPlan {
  readonly starts: number;
  /** Gateways that start or run at the same time: they are the load for each other. */
  readonly atOnce: number;
  /** Connections to each gateway after its first response: half of them one after the other, half at the same time. */
  readonly connections: number;
  /** Milliseconds after which a connection without a response counts as failed. */
  readonly patience: number;
  readonly print: (line: string) => void;
}

/** Result of many starts. */
export interface StartResult {
  readonly starts: number;
  /** Gateways that ended before they listened. */
  readonly failedStarts: number;
  readonly connections: number;
  /** Connections that got anything but a complete response. */
  readonly failedConnections: number;
  /** Gateways that did not end with 0 when they were told to stop. */
  readonly wrongExits: number;
  /** Reasons of failures, a few of them. */
  readonly reasons: readonly string[];
}

/** Numbers of workers, one after the other. */
const workerCounts = [1, 2, 3] as const;

/** Starts gateways with one to three workers, several at the same time, and connects to each from its first moment until it is told to stop. */
export async function tryStarts(plan: StartPlan): Promise<StartResult> {
  const counts = { started: 0, failedStarts: 0, connections: 0, failedConnections: 0, wrongExits: 0 };
  const reasons: string[] = [];
  const tryOne = async (number: number): Promise<void> => {
    const workers = workerCounts[number % workerCounts.length];
    let gateway: OperatedGateway;
    try {
      gateway = await operate({ 'gateway.config.mjs': configWith(`${members}, workers: ${workers}`) });
    } catch (error) {
      counts.failedStarts += 1;
      reasons.push(`start ${number}: ${String(error)}`);
      return;
    }
    try {
      const failures = await connectOften(gateway, plan);
      gateway.signal('SIGTERM');
      const exit = await gateway.exited;
      counts.connections += plan.connections + 1;
      counts.failedConnections += failures.length;
      if (exit !== 0) counts.wrongExits += 1;
      if (failures.length > 0 || exit !== 0)
        reasons.push(
          `start ${number}, ${workers} workers, exit ${exit}: ${failures.slice(0, 3).join('; ')}: ${gateway.output().slice(-2_000)}`,
        );
    } finally {
      await gateway.end();
    }
  };
  const line = async (): Promise<void> => {
    while (counts.started < plan.starts) {
      const number = counts.started;
      counts.started += 1;
      // oxlint-disable-next-line no-await-in-loop -- the number of gateways at the same time is given
      await tryOne(number);
      if ((number + 1) % 20 === 0)
        plan.print(`${number + 1} starts, ${counts.failedConnections} failed connections`);
    }
  };
  await Promise.all(Array.from({ length: plan.atOnce }, line));
  const { started: starts, ...rest } = counts;
  return { starts, ...rest, reasons: reasons.slice(0, 10) };
}

const members = 'channels: [demo()], timeouts: { drainDelay: 0 }';

/** Returns why connections failed, each of which is a new one. The first asks for `/healthz`. */
async function connectOften({ url }: OperatedGateway, plan: StartPlan): Promise<string[]> {
  const failures: string[] = [];
  const attempt = async (request: () => Promise<void>): Promise<void> => {
    try {
      await request();
    } catch (error) {
      const { message, cause } = error as Error;
      failures.push(cause === undefined ? message : `${message}: ${String(cause)}`);
    }
  };
  const signal = (): AbortSignal => AbortSignal.timeout(plan.patience);
  await attempt(() => isHealthy(url, signal()));
  const sequential = Math.floor(plan.connections / 2);
  for (let count = 0; count < sequential; count += 1)
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    await attempt(() => call(url, signal()));
  await Promise.all(
    Array.from({ length: plan.connections - sequential }, () => attempt(() => call(url, signal()))),
  );
  return failures;
}

async function isHealthy(url: string, signal: AbortSignal): Promise<void> {
  const response = await fetch(`${url}/healthz`, { headers: { connection: 'close' }, signal });
  await response.arrayBuffer();
  if (response.status !== 200) throw new Error(`/healthz: ${response.status}`);
}

async function call(url: string, signal: AbortSignal): Promise<void> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', connection: 'close' },
    body: JSON.stringify({ model: 'demo', messages: [{ role: 'user', content: 'hello' }] }),
    signal,
  });
  const text = await response.text();
  if (response.status !== 200 || !text.includes('You said'))
    throw new Error(`status ${response.status}: ${text.slice(0, 200)}`);
}

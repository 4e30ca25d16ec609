import { setTimeout as pause } from 'node:timers/promises';
import type { TargetHealth } from '../../core/sdk/health.ts';
import type { GatewayConfig } from '../../core/sdk/config.ts';
import type { Case } from './cases.ts';
import { startClients, type Clients } from './clients.ts';
import { formats, type Format } from './dialects.ts';
import { faults, type Fault, type Moment } from './faults.ts';
import type { UpstreamState } from './faulty-upstream.ts';
import { judge, type Outcome } from './oracles.ts';
import { inParallel, patient } from './run.ts';
import { buildStage, type Stage } from './stage.ts';

/** Options of the table. */
export interface FailoverOptions {
  /** Calls at once for each fault. */
  readonly calls: number;
  /** A part of a fault's name: others are left out. */
  readonly only?: string | undefined;
  readonly print?: (line: string) => void;
}

/** Targets rest long enough to be seen to, and short enough to come back while somebody looks. */
const quick = {
  ...patient,
  health: { failures: 5, rest: 1000, mostRest: 2000, refusedRest: 1000, coolDown: 1000, mostCoolDown: 2000 },
};

/** Longest wait for a channel that works again to be used again. */
const recovery = 20_000;
/** Interval between checks of the channel's state. */
const glance = 25;
/** Calls at once where each moves tens of megabytes. */
const heavyAtOnce = 4;

/**
 * Two channels, the first of which fails in each way: what clients see, and whether the first is left alone and comes back. Before the first
 * word nobody may see a thing; after it everybody sees an error that is right in the client's format, and nobody a clean end.
 */
export async function failover({ calls, only, print = () => {} }: FailoverOptions): Promise<{
  readonly cases: number;
  readonly violations: readonly string[];
}> {
  const chosen = faults.filter(({ name }) => only === undefined || name.includes(only));
  const violations: string[] = [];
  let cases = 0;
  const table = async (moments: readonly Moment[], settings: GatewayConfig): Promise<void> => {
    const stage = await buildStage({ settings, keys: 1 });
    try {
      for (const [index, fault] of chosen.filter(({ moment }) => moments.includes(moment)).entries()) {
        const channel = formats[index % formats.length] ?? 'messages';
        const line = await strike(
          stage,
          fault,
          channel,
          fault.heavy === true ? Math.ceil(calls / 10) : calls,
        );
        cases += line.calls;
        violations.push(...line.violations);
        print(row(line.columns));
      }
      await stage.gateway.request('close');
    } finally {
      await stage.end();
    }
  };
  print(
    row(['fault', 'channel', 'calls', 'complete', 'error', 'wrong', 'asked', 'left alone', 'back after']),
  );
  await table(['before', 'opened'], quick);
  // Here no channel is ever left alone: each call is to meet the fault.
  await table(['after'], patient);
  return { cases, violations };
}

interface Line {
  readonly calls: number;
  readonly columns: readonly (string | number)[];
  readonly violations: readonly string[];
}

async function strike(stage: Stage, fault: Fault, channel: Format, calls: number): Promise<Line> {
  const clients = startClients(stage.gateway.ready.url, stage.gateway.ready.keys, 60_000);
  const violations: string[] = [];
  const id = `${fault.name}.${channel}`;
  try {
    const watch = watchHealth(stage, id);
    const outcomes: Partial<Record<Outcome, number>> = {};
    let wrong = 0;
    const many = Array.from({ length: calls }, (_, index) => caseOf(fault, channel, index));
    await inParallel(many, fault.heavy === true ? heavyAtOnce : calls, async (one) => {
      const { outcome, problems } = judge(one, await clients.run(one));
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
      if (problems.length === 0) return;
      wrong += 1;
      if (wrong <= 5)
        violations.push(`${fault.name} ${one.mode} ${one.client} > ${channel}: ${problems.join('; ')}`);
    });
    if (wrong > 5) violations.push(`${fault.name}: ${wrong} of ${calls} calls are wrong`);
    const stood = await watch.end();
    const { requestCounts } = await stage.upstream.request<UpstreamState>('state');
    let back = '';
    if (fault.moment === 'after') back = '';
    else if (stood === undefined) violations.push(`${fault.name}: the channel was never left alone`);
    else {
      const after = await heal(stage, clients, fault, channel);
      if (after === undefined)
        violations.push(`${fault.name}: the channel works again, and is not used again`);
      else back = `${(after / 1000).toFixed(1)} s`;
    }
    const { complete = 0, broken = 0, severed = 0, refused = 0 } = outcomes;
    return {
      calls,
      violations,
      columns: [
        fault.name,
        channel,
        calls,
        complete,
        broken + severed + refused,
        wrong,
        requestCounts[fault.name] ?? '-',
        fault.moment === 'after' ? '' : (stood ?? 'never'),
        back,
      ],
    };
  } finally {
    clients.close();
  }
}

function caseOf(fault: Fault, channel: Format, index: number): Case {
  const client = formats[index % formats.length] ?? channel;
  const second = formats[Math.floor(index / formats.length) % formats.length] ?? channel;
  const [only] = fault.modes;
  const whole = fault.moment === 'before' && fault.modes.length > 1 && index % 2 === 1;
  return {
    number: index + 1,
    fault,
    client,
    channel,
    second,
    mode: whole ? 'whole' : fault.modes.length > 1 ? 'stream' : (only ?? 'stream'),
    conduct: 'stays',
    leaveAfter: 0,
    size: 'small',
    fresh: index % 3 === 0,
    asksUsage: false,
    key: 0,
  };
}

const standsWell = (places: readonly TargetHealth[], id: string): boolean =>
  places.every(({ channel, standing }) => channel !== id || standing === 'up');

/** Looks again and again how a channel stands; the end tells the first standing that was not `up`. */
function watchHealth(stage: Stage, id: string): { end(): Promise<string | undefined> } {
  const state: { over: boolean; stood?: string } = { over: false };
  const look = async (): Promise<void> => {
    const places = await stage.gateway.request<readonly TargetHealth[]>('health');
    const found = places.find(({ channel, standing }) => channel === id && standing !== 'up');
    if (found !== undefined) state.stood ??= found.standing;
  };
  const looking = (async () => {
    for (; !state.over; await pause(glance)) await look();
  })();
  return {
    async end() {
      state.over = true;
      await looking;
      await look();
      return state.stood;
    },
  };
}

/** The provider works again: how long it takes until the channel is used and stands well. */
async function heal(
  stage: Stage,
  clients: Clients,
  fault: Fault,
  channel: Format,
): Promise<number | undefined> {
  await stage.upstream.request('heal', { fault: fault.name, isHealed: true });
  const countBefore = (await stage.upstream.request<UpstreamState>('state')).requestCounts[fault.name] ?? 0;
  const began = performance.now();
  for (let index = 0; performance.now() - began < recovery; index += 1) {
    await clients.run(caseOf(fault, channel, index * formats.length + formats.indexOf(channel)));
    const { requestCounts } = await stage.upstream.request<UpstreamState>('state');
    const places = await stage.gateway.request<readonly TargetHealth[]>('health');
    if ((requestCounts[fault.name] ?? 0) > countBefore && standsWell(places, `${fault.name}.${channel}`))
      return performance.now() - began;
    await pause(50);
  }
  return undefined;
}

const widths = [30, 17, 6, 9, 6, 6, 6, 11, 10];

function row(columns: readonly (string | number)[]): string {
  return columns
    .map((column, index) => {
      const width = widths[index] ?? 10;
      return typeof column === 'number' ? String(column).padStart(width) : column.padEnd(width);
    })
    .join(' ');
}

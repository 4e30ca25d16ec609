/**
 * `sluice check --live`: tests the channels of a config at their providers, after it has printed the maximum cost and asked for confirmation.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { ConfigError, type LoadedConfig } from '../config/config.ts';
import { trials, tryOut, type Finding, type TrialTarget, type Trial } from '../conformance/index.ts';
import type { Gateway } from '../front/gateway.ts';
import { createLog } from '../log.ts';
import type { Channel } from '../sdk/call.ts';
import type { Operation } from '../sdk/format.ts';
import { startServer } from '../server.ts';
import { tryGateway } from '../try-gateway.ts';

/** Options of the command line. */
export interface LiveOptions {
  readonly channel: string | undefined;
  readonly models: readonly string[] | undefined;
  /** Skips the confirmation. */
  readonly yes: boolean | undefined;
}

/** Name of a model that no provider has. */
const stranger = 'sluice-no-such-model';

type ConfiguredChannel = LoadedConfig['channels'][number];

/** Trials of one channel. */
interface Plan {
  readonly configured: ConfiguredChannel;
  readonly id: string;
  readonly format: string;
  readonly rows: readonly PlannedTrial[];
  /** Maximum cost in micro-dollars; undefined when a model has no price. */
  readonly cost: number | undefined;
  /** Reasons why trials are left out. */
  readonly left: readonly string[];
}

interface PlannedTrial {
  readonly trial: Trial;
  /** Public name of the model; `upstreamModel` is its name at the provider. */
  readonly model: string;
  readonly upstreamModel: string;
}

/** Runs the trials and prints their findings. Returns the exit code. */
export async function liveCheck(config: LoadedConfig, options: LiveOptions): Promise<number> {
  const all = await tryGateway(config, (gateway) => plans(config, gateway, options));
  if (all.length === 0) {
    const ids = config.channels.map(({ entry }) => idOf(entry)).join(', ');
    throw new Error(`Unknown channel "${String(options.channel)}". The config has: ${ids || 'none'}.`);
  }
  for (const plan of all) console.log(announcement(plan));
  if (all.every(({ rows }) => rows.length === 0)) return 1;
  if (options.yes !== true && !(await mayGoOn())) return 1;
  let code = 0;
  for (const plan of all) {
    console.log(`\n${plan.id}`);
    // One provider after the other, so that the output can be followed.
    // oxlint-disable-next-line no-await-in-loop
    if (!(await carryOut(config, plan))) code = 1;
  }
  return code;
}

function idOf(entry: ConfiguredChannel['entry']): string {
  return entry.options.id ?? entry.spec.name;
}

function plans(config: LoadedConfig, { catalog, prices }: Gateway, options: LiveOptions): readonly Plan[] {
  return config.channels
    .filter(({ entry }) => options.channel === undefined || idOf(entry) === options.channel)
    .flatMap((configured) => {
      const id = idOf(configured.entry);
      const channel = catalog.channels.find((one) => one.id === id);
      if (channel === undefined) return [];
      const left: string[] = [];
      const rows = trials.flatMap((trial): readonly PlannedTrial[] => {
        const operation = trial.operation === 'count-tokens' ? 'chat' : trial.operation;
        if (channel.speaks[operation] === undefined) return [];
        const chosen = modelFor(operation, channel, prices, options.models);
        if (chosen === undefined) {
          const why = `${operation}: the channel has no known model for this. Name one with --model.`;
          if (!left.includes(why)) left.push(why);
          return [];
        }
        return [{ trial, ...chosen }];
      });
      const costs = rows.map(({ trial, model }) => prices.most(model, trial.input, trial.output));
      const cost = costs.reduce<number | undefined>(
        (sum, one) => (sum === undefined || one === undefined ? undefined : sum + one),
        0,
      );
      return [{ configured, id, format: channel.speaks.chat?.[0] ?? '', rows, cost, left }];
    });
}

/** Returns the cheapest model for an operation, of those that were named or those of the channel; undefined where there is none. */
function modelFor(
  operation: Operation,
  channel: Channel,
  prices: Gateway['prices'],
  wanted: readonly string[] | undefined,
): Pick<PlannedTrial, 'model' | 'upstreamModel'> | undefined {
  const names = wanted ?? channel.listed?.() ?? channel.models.filter((name) => !name.includes('*'));
  const found = names.flatMap((model) => {
    const upstreamModel = channel.upstreamModel(model);
    if (upstreamModel === undefined) return [];
    const known = channel.known?.(upstreamModel);
    // An unknown model counts as one for chats, because most models are.
    const purpose = known?.operation ?? (known !== undefined || operation === 'chat' ? 'chat' : undefined);
    if (purpose !== operation || known?.retired === true) return [];
    return [{ model, upstreamModel, price: prices.most(model, 1000, 1000) ?? Infinity }];
  });
  return found.toSorted((one, other) => one.price - other.price)[0];
}

function announcement({ id, rows, cost, left }: Plan): string {
  const sum = (pick: (trial: Trial) => number): number =>
    rows.reduce((total, { trial }) => total + pick(trial), 0);
  const models = [...new Set(rows.map(({ model }) => model))].join(', ');
  const price = cost === undefined ? 'unknown cost' : `at most $${(cost / 1e6).toFixed(4)}`;
  const lines =
    rows.length === 0
      ? [`${id}: there is nothing to test.`]
      : [
          `${id}: ${sum(({ requests }) => requests)} requests to ${models}, with at most ${sum(({ input }) => input)} input and ${sum(({ output }) => output)} output tokens, ${price}.`,
        ];
  return [...lines, ...left.map((why) => `  ${why}`)].join('\n');
}

async function mayGoOn(): Promise<boolean> {
  if (!process.stdin.isTTY) {
    console.log(
      'Sent nothing, because there is no terminal to confirm it. To go on without confirmation use --yes.',
    );
    return false;
  }
  const lines = createInterface({ input: process.stdin, output: process.stdout });
  try {
    return /^y(es)?$/i.test((await lines.question('Send these requests? [y/N] ')).trim());
  } finally {
    lines.close();
  }
}

/** Runs the trials of one channel and prints each finding. Returns false when the channel does not answer with a text. */
async function carryOut(config: LoadedConfig, { configured, rows, format }: Plan): Promise<boolean> {
  const width = Math.max(...rows.map(({ trial }) => trial.name.length), wrongKey.length);
  const print = (name: string, { result, remark }: Finding): void =>
    console.log(`  ${name.padEnd(width)}  ${result.padEnd(7)}  ${remark}`.trimEnd());
  let answers = true;
  await behindGateway(config, narrowed(configured, rows), async (at) => {
    for (const { trial, model } of rows) {
      // oxlint-disable-next-line no-await-in-loop
      const finding = await tryOut(trial, { ...at, model, stranger, format });
      print(trial.name, finding);
      if (trial.name === 'text' && finding.result !== 'holds') answers = false;
    }
  });
  const chat = rows.find(({ trial }) => trial.operation === 'chat');
  const entry = narrowed(configured, rows);
  if (chat === undefined || entry.entry.options.key === undefined) return answers;
  const locked = {
    ...entry,
    entry: {
      ...entry.entry,
      options: { ...entry.entry.options, key: 'sluice-wrong-key', keys: undefined as never },
    },
  };
  await behindGateway(config, locked, async (at) => {
    print(wrongKey, await withWrongKey({ ...at, model: chat.model, stranger, format }));
  });
  return answers;
}

const wrongKey = 'a wrong key';

async function withWrongKey(target: TrialTarget): Promise<Finding> {
  const finding = await tryOut(trials[0] as Trial, target);
  if (finding.result === 'refused') return { result: 'holds', remark: '' };
  return { result: 'differs', remark: 'the provider accepts any key' };
}

/** Returns the channel with only the models of the trials. */
function narrowed({ at, entry }: ConfiguredChannel, rows: readonly PlannedTrial[]): ConfiguredChannel {
  const models = Object.fromEntries([
    ...rows.map(({ model, upstreamModel }) => [model, upstreamModel] as const),
    [stranger, stranger] as const,
  ]);
  return { at, entry: { ...entry, options: { ...entry.options, models, discover: false } } };
}

/** Starts a gateway with one channel and a database in memory, on a free port of this machine. */
async function behindGateway(
  config: LoadedConfig,
  channel: ConfiguredChannel,
  work: (at: Pick<TrialTarget, 'url' | 'key'>) => Promise<void>,
): Promise<void> {
  const data = mkdtempSync(join(tmpdir(), 'sluice-live-'));
  const { settings } = config;
  const server = await startServer(
    {
      ...config,
      plugins: [],
      channels: [channel],
      settings: {
        ...settings,
        listen: { ...settings.listen, host: '127.0.0.1', port: 0 },
        database: 'sqlite::memory:',
        data,
        workers: 1,
        bootstrapKey: undefined,
        shared: { ...settings.shared, url: 'memory:' },
        routing: { ...settings.routing, attempts: 1 },
        // A refusal in one trial must not open a circuit breaker for the next.
        health: { ...settings.health, enabled: false },
        timeouts: { ...settings.timeouts, drain: 0 },
      },
    },
    createLog('silent'),
  ).catch((error: unknown) => {
    rmSync(data, { recursive: true, force: true });
    throw error instanceof ConfigError ? new Error(error.problems.join('\n')) : error;
  });
  try {
    await work({ url: server.url, key: server.firstKey ?? '' });
  } finally {
    await server.close();
    rmSync(data, { recursive: true, force: true });
  }
}

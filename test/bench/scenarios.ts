import type { ClosedLoad, Done, Shot, StreamLoad } from './load.ts';
import { wires, type Wire } from './inputs.ts';
import { inputs, type InputName } from './sessions.ts';
import type { Stage } from './stage.ts';
import { cpuUsed, type Target } from './targets.ts';

/** What one run of a scenario cost. */
export interface Measured {
  /** Microseconds of CPU, of all processes of the target, per call or chunk. */
  readonly cpu: number;
  /** Calls or chunks in a second. */
  readonly perSecond: number;
  readonly failures: readonly string[];
}

/** One kind of call, made many times. */
export interface Scenario {
  readonly name: string;
  readonly title: string;
  readonly group: 'native' | 'translated';
  /** What is counted. */
  readonly unit: 'call' | 'chunk';
  /** Sluice should cost at most so many times what raw costs. */
  readonly goal?: number;
  run(stage: Stage, target: Target, seconds: number): Promise<Measured>;
}

/** A call without its target: what the client speaks, and what its provider does. */
interface Pair {
  readonly client: Wire;
  readonly provider: Wire;
}

/** Raw translates nothing: its clients speak as the provider does. */
function shotFor(
  target: Target,
  { client, provider }: Pair,
  input: InputName,
  reply: string,
  rest: Pick<Shot, 'deltas' | 'atLeast'> & { readonly stream: boolean },
): Shot {
  const wire = target.name === 'raw' ? provider : client;
  return { url: target.url, key: target.key, wire, input, model: `${provider}.${reply}`, ...rest };
}

async function costOf(target: Target, unit: Scenario['unit'], work: () => Promise<Done>): Promise<Measured> {
  const before = cpuUsed(target);
  const { replies, deltas, seconds, failures } = await work();
  const count = unit === 'call' ? replies : deltas;
  return {
    cpu: (cpuUsed(target) - before) / Math.max(1, count),
    perSecond: count / seconds,
    failures,
  };
}

/** On a busy machine a round is longer: eight times what is open at once, for each second. */
function least(seconds: number, concurrency: number): number {
  return Math.ceil(8 * seconds * concurrency);
}

/** Whole replies, as many as fit in the time. */
function calls(
  named: Pick<Scenario, 'name' | 'title' | 'group' | 'goal'>,
  pair: Pair,
  input: InputName,
  reply = 'small',
): Scenario {
  const concurrency = inputs[input].concurrency;
  const atLeast = reply === 'large' ? 50_000 : 100;
  return {
    unit: 'call',
    ...named,
    run(stage, target, seconds) {
      const shot = shotFor(target, pair, input, reply, { stream: false, atLeast });
      const load: ClosedLoad = { shot, concurrency, seconds, least: least(seconds, concurrency) };
      return costOf(target, 'call', () => stage.load.ask('closed', load));
    },
  };
}

/** Streams of 200 deltas as fast as they come, as many as fit in the time. */
function fast(
  named: Pick<Scenario, 'name' | 'title' | 'group' | 'goal'>,
  pair: Pair,
  kind: 'fast' | 'tool',
): Scenario {
  const deltas = 200;
  return {
    unit: 'chunk',
    ...named,
    run(stage, target, seconds) {
      const shot = shotFor(target, pair, 'small', `${kind}-${deltas}`, { stream: true, deltas });
      const load: ClosedLoad = { shot, concurrency: 16, seconds, least: least(seconds, 8) };
      return costOf(target, 'chunk', () => stage.load.ask('closed', load));
    },
  };
}

/** A hundred streams at once, of one chunk each 20 milliseconds. */
function paced(named: Pick<Scenario, 'name' | 'title' | 'group' | 'goal'>, pair: Pair): Scenario {
  const pace = 20;
  return {
    unit: 'chunk',
    ...named,
    run(stage, target, seconds) {
      const deltas = Math.max(1, Math.round((seconds * 1000) / pace));
      const shot = shotFor(target, pair, 'small', `paced-${deltas}-${pace}`, { stream: true, deltas });
      const load: StreamLoad = { shot, streams: 100, spread: pace };
      return costOf(target, 'chunk', () => stage.load.ask('streams', load));
    },
  };
}

const chat: Pair = { client: 'chat', provider: 'chat' };

function native(name: InputName, goal: number, wire: Wire = 'chat'): Scenario {
  const of = wire === 'chat' ? '' : `, ${wire}`;
  return calls(
    {
      name: wire === 'chat' ? name : `${name}:${wire}`,
      title: `${inputs[name].title}${of}`,
      group: 'native',
      goal,
    },
    { client: wire, provider: wire },
    name,
  );
}

const translations = wires.flatMap((client) =>
  wires.filter((provider) => provider !== client).map((provider): Pair => ({ client, provider })),
);

function translated({ client, provider }: Pair): readonly Scenario[] {
  const pair = { client, provider };
  const of = `${client} client, ${provider} channel`;
  return [
    calls(
      {
        name: `turn30:${client}>${provider}`,
        title: `agent turn 30, ${of}`,
        group: 'translated',
        goal: 3,
      },
      pair,
      'turn30',
    ),
    paced(
      {
        name: `paced:${client}>${provider}`,
        title: `paced stream, ${of}`,
        group: 'translated',
        goal: 1.3,
      },
      pair,
    ),
  ];
}

/** Every scenario, in the order of the table. */
export const scenarios: readonly Scenario[] = [
  native('small', 1.6),
  native('turn1', 2),
  native('turn30', 1.9),
  native('turn100', 1.9),
  native('plain', 1.9),
  native('turn30', 1.9, 'messages'),
  native('turn30', 1.9, 'responses'),
  native('turn30', 1.9, 'generateContent'),
  calls({ name: 'reply', title: '50 KB reply', group: 'native', goal: 1.2 }, chat, 'small', 'large'),
  fast({ name: 'fast', title: 'fast stream, 200 deltas', group: 'native', goal: 1.25 }, chat, 'fast'),
  fast({ name: 'tool', title: 'fast stream of tool arguments', group: 'native', goal: 1.25 }, chat, 'tool'),
  paced({ name: 'paced', title: 'paced stream, 100 at once', group: 'native', goal: 1.1 }, chat),
  ...translations.flatMap(translated).toSorted((a, b) => (a.unit < b.unit ? -1 : a.unit > b.unit ? 1 : 0)),
];

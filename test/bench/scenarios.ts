import type { ClosedLoad, Done, Shot, StreamLoad } from './load.ts';
import { wires, type Wire } from './inputs.ts';
import {
  contentVarieties,
  longVarieties,
  plainVarieties,
  sessionVarieties,
  simplest,
  type Manner,
  type Variety,
} from './manners.ts';
import { inputs, type InputName } from './sessions.ts';
import type { Stage } from './stage.ts';
import { cpuUsed, type Target } from './targets.ts';

/** Cost of one run of a scenario. */
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
  readonly group: 'native' | 'translated' | 'variety';
  /** Unit of the count. */
  readonly unit: 'call' | 'chunk';
  /** Sluice should cost at most so many times what raw costs. */
  readonly goal?: number;
  /** The scenario of the simplest requests of the same size, where this one is compared with it. */
  readonly simplest?: string;
  /** Why it may cost much more than that. */
  readonly because?: string;
  run(stage: Stage, target: Target, seconds: number): Promise<Measured>;
}

/** A scenario, but for what it does. */
type Named = Omit<Scenario, 'unit' | 'run'>;

/** A call without its target: what the client speaks, what its provider does, and how it is sent. */
interface Pair {
  readonly client: Wire;
  readonly provider: Wire;
  /** With a key that has limits; `levels`: whose team and organisation have limits too. */
  readonly limited?: boolean | 'levels';
  readonly manner?: Manner;
}

/** Raw translates nothing: its clients speak as the provider does. */
async function shotFor(
  target: Target,
  { client, provider, limited = false, manner }: Pair,
  input: InputName,
  reply: string,
  rest: Pick<Shot, 'deltas' | 'atLeast'> & { readonly stream: boolean },
): Promise<Shot> {
  return {
    url: target.url,
    key: limited === 'levels' ? await target.levelsKey() : limited ? await target.limitedKey() : target.key,
    wire: target.name === 'raw' ? provider : client,
    input,
    model: `${provider}.${reply}`,
    ...(manner === undefined ? {} : { manner }),
    ...rest,
  };
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
function calls(named: Named, pair: Pair, input: InputName, reply = 'small'): Scenario {
  const concurrency = inputs[input].concurrency;
  const atLeast = reply === 'large' ? 50_000 : 100;
  return {
    unit: 'call',
    ...named,
    async run(stage, target, seconds) {
      const shot = await shotFor(target, pair, input, reply, { stream: false, atLeast });
      const load: ClosedLoad = { shot, concurrency, seconds, least: least(seconds, concurrency) };
      return costOf(target, 'call', () => stage.load.request('closed', load));
    },
  };
}

/** Streams of 200 deltas as fast as they come, as many as fit in the time. */
function fast(named: Named, pair: Pair, kind: 'fast' | 'tool'): Scenario {
  const deltas = 200;
  return {
    unit: 'chunk',
    ...named,
    async run(stage, target, seconds) {
      const shot = await shotFor(target, pair, 'small', `${kind}-${deltas}`, { stream: true, deltas });
      const load: ClosedLoad = { shot, concurrency: 16, seconds, least: least(seconds, 8) };
      return costOf(target, 'chunk', () => stage.load.request('closed', load));
    },
  };
}

/** A hundred streams at once, of one chunk each 20 milliseconds. */
function paced(named: Named, pair: Pair): Scenario {
  const pace = 20;
  return {
    unit: 'chunk',
    ...named,
    async run(stage, target, seconds) {
      const deltas = Math.max(1, Math.round((seconds * 1000) / pace));
      const shot = await shotFor(target, pair, 'small', `paced-${deltas}-${pace}`, { stream: true, deltas });
      const load: StreamLoad = { shot, streams: 100, spread: pace };
      return costOf(target, 'chunk', () => stage.load.request('streams', load));
    },
  };
}

const chat: Pair = { client: 'chat', provider: 'chat' };
const limitedChat: Pair = { ...chat, limited: true };

/** One input with a key that has no limits, and with one that has. */
function native(
  name: InputName,
  goal: number,
  limitedGoal: number,
  wire: Wire = 'chat',
): readonly Scenario[] {
  const of = wire === 'chat' ? '' : `, ${wire}`;
  const scenario = wire === 'chat' ? name : `${name}:${wire}`;
  const pair = { client: wire, provider: wire };
  const title = `${inputs[name].title}${of}`;
  return [
    calls({ name: scenario, title, group: 'native', goal }, pair, name),
    calls(
      { name: `${scenario}:limited`, title: `${title}, limited key`, group: 'native', goal: limitedGoal },
      { ...pair, limited: true },
      name,
    ),
  ];
}

/** Rows of the table of varieties: the simplest requests of one size, and others of that size. */
function varied(input: InputName, varieties: readonly Variety[], wire: Wire = 'chat'): readonly Scenario[] {
  const of = wire === 'chat' ? input : `${input}:${wire}`;
  const first = `${of}+simplest`;
  const pair = { client: wire, provider: wire };
  return [
    calls(
      { name: first, title: `${inputs[input].title}, ${wire}`, group: 'variety', simplest: first },
      { ...pair, manner: simplest },
      input,
    ),
    ...varieties.map(({ name, title, manner, limited = false, because }) =>
      calls(
        {
          name: `${of}+${name}`,
          title,
          group: 'variety',
          simplest: first,
          ...(because === undefined ? {} : { because }),
        },
        { ...pair, manner, limited },
        input,
      ),
    ),
  ];
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

const streamed = [
  ['', chat],
  [':limited', limitedChat],
] as const;

/** Every scenario, in the order of the table. */
export const scenarios: readonly Scenario[] = [
  ...native('small', 2, 2.3),
  calls(
    { name: 'small:levels', title: 'small chat, limited key, three levels', group: 'native', goal: 2.6 },
    { ...chat, limited: 'levels' },
    'small',
  ),
  ...native('turn1', 2, 2.2),
  ...native('turn30', 1.6, 1.7),
  ...native('turn100', 1.5, 1.6),
  ...native('plain', 1.6, 1.7),
  ...native('turn30', 1.6, 1.7, 'messages'),
  ...native('turn30', 1.6, 1.7, 'responses'),
  ...native('turn30', 1.6, 1.7, 'generateContent'),
  ...streamed.flatMap(([name, pair]): readonly Scenario[] => {
    const isLimited = pair.limited === true;
    const of = isLimited ? ', limited key' : '';
    const goal = (unlimited: number, limited: number) => ({ goal: isLimited ? limited : unlimited });
    const group = 'native';
    return [
      calls(
        { name: `reply${name}`, title: `50 KB reply${of}`, group, ...goal(1.5, 1.7) },
        pair,
        'small',
        'large',
      ),
      fast(
        { name: `fast${name}`, title: `fast stream, 200 deltas${of}`, group, ...goal(1, 1.05) },
        pair,
        'fast',
      ),
      fast(
        { name: `tool${name}`, title: `fast stream of tool arguments${of}`, group, ...goal(1, 1.05) },
        pair,
        'tool',
      ),
      paced(
        { name: `paced${name}`, title: `paced stream, 100 at once${of}`, group, ...goal(1.2, 1.3) },
        pair,
      ),
    ];
  }),
  ...translations.flatMap(translated).toSorted((a, b) => (a.unit < b.unit ? -1 : a.unit > b.unit ? 1 : 0)),
  ...varied('small', plainVarieties),
  ...varied('turn1', plainVarieties),
  ...varied('turn30', sessionVarieties),
  ...varied('turn30', contentVarieties, 'generateContent'),
  ...varied('turn100', longVarieties),
];

import { setTimeout as pause } from 'node:timers/promises';
import type { WireFrame } from '../../core/sdk/format.ts';
import { parseSse } from '../../core/formats/_shared/sse.ts';
import type { JsonObject } from '../../core/model/json.ts';
import { audit, mebibytes, type Made } from './accounts.ts';
import { nameOf, type Case } from './cases.ts';
import { startClients, type Clients, type Request, type Seen } from './clients.ts';
import { dialects, formats, type Format } from './dialects.ts';
import { faultNamed, faults } from './faults.ts';
import type { Books } from './gateway-process.ts';
import { judge, type Outcome } from './oracles.ts';
import { randomFrom, type Random } from './random.ts';
import { patient, settle } from './run.ts';
import { buildStage } from './stage.ts';

/** Duration and random seed. */
export interface SoakOptions {
  readonly seed: number;
  readonly minutes: number;
  /** The most calls in a second; as many as the machine can when undefined. */
  readonly rate?: number | undefined;
  readonly print?: (line: string) => void;
}

const parallel = 48;
/** The share of the time after which nothing should grow any more. */
const warmUp = 0.3;
/** The most by which the memory may differ at the end from after the warm-up. */
const growth = 0.1;

/** Mixed load for some minutes: what is held at the end must be what was held after the warm-up. */
export async function soak({ seed, minutes, rate, print = () => {} }: SoakOptions): Promise<{
  readonly cases: number;
  readonly violations: readonly string[];
}> {
  const stage = await buildStage({ settings: patient });
  const clients = startClients(stage.gateway.ready.url, stage.gateway.ready.keys);
  const random = randomFrom(seed);
  const violations: string[] = [];
  const made: Made[] = [];
  const outcomes: Partial<Record<Outcome, number>> = {};
  const began = performance.now();
  const passed = (): number => (performance.now() - began) / 60_000;
  let number = 0;
  let times: number[] = [];
  let due = began;
  const waitForRate = async (): Promise<void> => {
    if (rate === undefined) return;
    due = Math.max(due, performance.now() - 1000) + 1000 / rate;
    await pause(Math.max(0, due - performance.now()));
  };

  const worker = async (until: number): Promise<void> => {
    while (passed() < until) {
      await waitForRate();
      number += 1;
      const startedAt = performance.now();
      const { name, seen, outcome, problems } = await oneCall(random, clients, number);
      times.push(performance.now() - startedAt);
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
      made.push({ name, id: seen.id, status: seen.status, outcome });
      for (const problem of problems) violations.push(`${name}: ${problem}`);
    }
  };
  const load = async (until: number): Promise<void> => {
    const working = Promise.all(Array.from({ length: parallel }, () => worker(until)));
    const state = { over: false };
    const sampling = (async () => {
      for (; !state.over; await pause(Math.min(10_000, minutes * 3000))) {
        const sorted = times.toSorted((one, other) => one - other);
        times = [];
        print(
          [
            `${(passed() * 60).toFixed(0).padStart(5)} s`,
            `${String(number).padStart(8)} calls`,
            mebibytes(await stage.gateway.request<number>('rss')),
            `half of the calls within ${(sorted[sorted.length >> 1] ?? 0).toFixed(0)} ms`,
          ].join('  '),
        );
      }
    })();
    await working;
    state.over = true;
    await sampling;
  };

  try {
    await load(minutes * warmUp);
    const { probe: before } = await settle(stage, clients);
    print(
      `warm: ${mebibytes(before.rss)}, heap ${mebibytes(before.heap)}, handles ${JSON.stringify(before.handles)}`,
    );
    const warmed = number;
    await load(Math.max(minutes, passed() + minutes * (1 - warmUp)));
    const { probe: after, upstream } = await settle(stage, clients, { before });
    print(
      `end:  ${mebibytes(after.rss)}, heap ${mebibytes(after.heap)}, handles ${JSON.stringify(after.handles)}`,
    );
    print(
      `memory ${percent(after.rss / before.rss - 1)} and heap ${percent(after.heap / before.heap - 1)} after ${number - warmed} more calls`,
    );
    print(
      Object.entries(outcomes)
        .map(([outcome, count]) => `${outcome} ${count}`)
        .join(', '),
    );
    if (after.rss > before.rss * (1 + growth))
      violations.push(`the memory grew from ${mebibytes(before.rss)} to ${mebibytes(after.rss)}`);
    for (const [kind, count] of Object.entries(after.handles)) {
      if (count > (before.handles[kind] ?? 0) + (kind === 'Timeout' ? 3 : 0))
        violations.push(`${count} handles of ${kind}, ${before.handles[kind] ?? 0} after the warm-up`);
    }
    if (upstream.running > 0) violations.push(`the provider still answers ${upstream.running} requests`);
    if (after.reservations > 0) violations.push(`${after.reservations} claims are left in the ledger`);
    for (const line of after.errors) violations.push(`the log tells of a failure of its own: ${line}`);
    violations.push(...audit(made, await stage.gateway.request<Books>('books')));
    await stage.gateway.request('close');
  } finally {
    clients.close();
    await stage.end();
  }
  return { cases: number, violations };
}

const percent = (share: number): string => `${share >= 0 ? '+' : ''}${(share * 100).toFixed(1)} %`;

interface One {
  readonly name: string;
  readonly seen: Seen;
  readonly outcome: Outcome;
  readonly problems: readonly string[];
}

/** Most calls are sound; one of twenty meets a fault, one of twelve a client's mistake, one of eight calls a tool. */
async function oneCall(random: Random, clients: Clients, number: number): Promise<One> {
  const draw = random.next();
  if (draw < 0.08) return mistake(random, clients);
  if (draw < 0.2) return toolCall(random, clients);
  const one = caseFor(random, number);
  const seen = await clients.run(one);
  return { name: `${number} ${nameOf(one)}`, seen, ...judge(one, seen) };
}

const odd = faults.filter(({ moment, heavy }) => moment !== 'sound' && heavy !== true);
const sound = faults.filter(({ moment, verbatim }) => moment === 'sound' && verbatim !== true);

function caseFor(random: Random, number: number): Case {
  const list = random.chance(0.05) ? odd : random.chance(0.3) ? sound : [faultNamed('plain')];
  const fault = list[random.int(list.length)] ?? faultNamed('plain');
  const draw = random.next();
  const conduct = fault.moment === 'endless' || draw < 0.06 ? 'leaves' : draw < 0.12 ? 'slow' : 'stays';
  return {
    number,
    fault,
    mode: fault.modes[random.int(fault.modes.length)] ?? 'stream',
    client: random.pick(formats),
    channel: random.pick(formats),
    ...(random.chance(0.5) ? { second: random.pick(formats) } : {}),
    conduct,
    leaveAfter: random.int(fault.moment === 'endless' ? 800 : 60),
    size: conduct === 'slow' || random.chance(0.05) ? 'large' : 'small',
    fresh: random.chance(0.2),
    asksUsage: random.chance(0.5),
    key: random.int(3),
  };
}

const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const prompt = 'Please call get_weather';
const withTool: Readonly<Record<Format, object>> = {
  'chat-completions': {
    messages: [{ role: 'user', content: prompt }],
    tools: [{ type: 'function', function: { name: 'get_weather', parameters } }],
  },
  messages: {
    max_tokens: 500,
    messages: [{ role: 'user', content: prompt }],
    tools: [{ name: 'get_weather', input_schema: parameters }],
  },
  'generate-content': {
    contents: [{ role: 'user', parts: [{ text: prompt }] }],
    tools: [{ functionDeclarations: [{ name: 'get_weather', parameters }] }],
  },
  responses: { input: prompt, store: false, tools: [{ type: 'function', name: 'get_weather', parameters }] },
};

function requestFor(client: Format, stream: boolean, model: string, members: object): Request {
  const named = client === 'generate-content' ? {} : { model, stream };
  return {
    client,
    mode: stream ? 'stream' : 'whole',
    model,
    body: JSON.stringify({ ...named, ...members }),
    conduct: 'stays',
  };
}

/** A model that calls a tool, on a channel of any format. */
async function toolCall(random: Random, clients: Clients): Promise<One> {
  const client = random.pick(formats);
  const stream = random.chance(0.5);
  const model = `demo.${random.pick(formats)}`;
  const seen = await clients.send(requestFor(client, stream, model, withTool[client]));
  const problems: string[] = [];
  if (seen.status !== 200 || !seen.ended || !seen.text.includes('get_weather'))
    problems.push(`status ${seen.status}: ${seen.text.slice(0, 200)}`);
  else if (stream) problems.push(...dialects[client].problems(framesOf(seen.text)));
  return { name: `tool ${client} > ${model}`, seen, outcome: 'verbatim', problems };
}

function framesOf(text: string): WireFrame[] {
  return parseSse(text).map(({ event, data }) => ({
    ...(event === undefined ? {} : { event }),
    ...(data === '[DONE]' ? { text: data } : { json: JSON.parse(data) as JsonObject }),
  }));
}

/** Mistakes of clients, with the statuses that they may receive. */
const mistakes: readonly {
  readonly key?: string;
  readonly model: string;
  readonly body?: string;
  readonly statuses: readonly number[];
}[] = [
  { model: 'nobody-has-this', statuses: [503] },
  { model: 'plain.messages.alone', body: '{"model":', statuses: [400] },
  { model: 'plain.messages.alone', body: '[]', statuses: [400] },
  { model: 'plain.messages.alone', key: 'sk-unknown', statuses: [401, 429] },
];

async function mistake(random: Random, clients: Clients): Promise<One> {
  const client = random.pick(formats);
  const wrong = mistakes[random.int(mistakes.length)] ?? { model: '', statuses: [] };
  const request = requestFor(client, random.chance(0.5), wrong.model, withTool[client]);
  const seen = await clients.send({
    ...request,
    ...(wrong.body === undefined ? {} : { body: wrong.body }),
    ...(wrong.key === undefined ? {} : { key: wrong.key }),
  });
  const problems: string[] = [];
  if (!wrong.statuses.includes(seen.status))
    problems.push(
      `status ${seen.status}, and not ${wrong.statuses.join(' or ')}: ${seen.text.slice(0, 200)}`,
    );
  else if (!dialects[client].isEnvelope(JSON.parse(seen.text) as Record<string, unknown>, seen.status))
    problems.push(`not the envelope of ${client}: ${seen.text.slice(0, 200)}`);
  return { name: `mistake ${client} ${wrong.model} ${wrong.body ?? ''}`, seen, outcome: 'refused', problems };
}

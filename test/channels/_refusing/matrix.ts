import { startGateway, type ChannelUnderTest, type TestGateway } from 'sluice/testing';
import { ownKinds } from '../_kinds.ts';
import { presetKind, presets } from '../_presets.ts';
import type { Json } from './checks.ts';
import { startRefusing, type Judged, type Refusing } from './fake.ts';
import {
  agents,
  bodyFor,
  clients,
  ordinary,
  pathFor,
  suffixes,
  type Client,
  type Ordinary,
} from './requests.ts';
import type { Row } from './rows.ts';
import { asksForMuch, asksForNone, asksForSome } from './reasoning-controls.ts';

/** Outcome of a client's request to a model. */
export interface Outcome {
  readonly row: Row;
  readonly client: Client;
  readonly request: string;
  /** `accepted`; `refused` by the provider; `declined` by the gateway without a request to the provider; `failed` after a response of the provider. */
  readonly result: 'accepted' | 'refused' | 'declined' | 'failed';
  readonly status: number;
  /** Error message of the refusal. */
  readonly reason?: string;
  /** Source of the violated rule. */
  readonly source?: string;
  /** Result for a requested effort at the provider. Undefined when none was requested or the model has no control. */
  readonly effort?: 'reached' | 'lost';
  readonly losses?: string;
}

/** Formats whose clients request thinking by a budget. */
const saysBudget: ReadonlySet<Client> = new Set(['messages', 'generate-content', 'converse']);

/** Models that see. */
const sees =
  /gpt-[456]|o3|claude|gemini|nova|grok-4|kimi-k[23]\.?[56]?|mistral-medium|qwen3\.5|glm-4\.5v|doubao|sonar/i;

/** Ends of addresses of kinds whose messages format stands beside chat completions only where the address ends so. Default `/v1`. */
const addresses: Readonly<Record<string, string>> = {
  bedrock: '',
  'azure-openai': '',
  zai: '/api/paas/v4',
  zhipu: '/api/paas/v4',
  dashscope: '/compatible-mode/v1',
  friendli: '/serverless/v1',
};

/** Options of kinds that need more than a key and an address. */
const options: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  bedrock: { region: 'us-east-1' },
  openai: {},
};

async function testedOf(row: Row, index: number, tokens: string): Promise<ChannelUnderTest> {
  if (row.made !== undefined) {
    const own = ownKinds(tokens)[row.made];
    if (own === undefined) throw new Error(`There is no fixture ${row.made}.`);
    return own;
  }
  const kind = await presetKind(row.kind);
  const known = row.kind === 'ollama' ? {} : (presets[row.kind]?.options ?? {});
  return {
    ...(row.kind === 'mistral' || row.model.startsWith('mistral-')
      ? { voice: ownKinds(tokens)['mistral']?.voice }
      : {}),
    channel: ({ url, key }) =>
      kind({
        ...known,
        ...options[row.kind],
        id: `${row.kind}-${index}`,
        key,
        baseUrl: url + (addresses[row.kind] ?? '/v1'),
        models: [row.model],
      }),
  } as ChannelUnderTest;
}

/** Rows whose models have different names, so that one gateway can serve them all. */
function grouped(rows: readonly Row[]): readonly (readonly number[])[] {
  const groups: { readonly names: Set<string>; readonly members: number[] }[] = [];
  for (const [index, { model }] of rows.entries()) {
    let group = groups.find(({ names }) => !names.has(model));
    if (group === undefined) groups.push((group = { names: new Set(), members: [] }));
    group.names.add(model);
    group.members.push(index);
  }
  return groups.map(({ members }) => members);
}

/** Selects the requests for each row. */
export type Chosen = (row: Row, client: Client, request: string) => boolean;

/** Sends every ordinary request of every client to every row, through gateways with the real channels, over sockets. */
export async function runMatrix(
  rows: readonly Row[],
  tokens: string,
  isChosen: Chosen = () => true,
): Promise<readonly Outcome[]> {
  const tested = await Promise.all(rows.map((row, index) => testedOf(row, index, tokens)));
  const refusing = await startRefusing(rows, tested);
  const outcomes: Outcome[] = [];
  try {
    for (const group of grouped(rows)) {
      const channels = group.map((index) => {
        const entry = tested[index]?.channel({
          url: `${refusing.upstream.url}/${index}`,
          key: 'key-of-the-provider',
        });
        if (entry === undefined) throw new Error('There is no channel.');
        const { model, kind } = rows[index] ?? { model: '', kind: '' };
        const own = { ...entry.options, id: `${kind}-${index}`, models: [model], learn: false };
        return { ...entry, options: own };
      });
      // oxlint-disable no-await-in-loop -- the gateways stand one after the other
      const gateway = await startGateway({ channels, routing: { attempts: 1 } });
      try {
        const found = await Promise.all(
          group.map((index) => runRow({ index, row: rows[index] as Row, gateway, refusing, isChosen })),
        );
        outcomes.push(...found.flat());
      } finally {
        await gateway.close();
      }
      // oxlint-enable no-await-in-loop
    }
  } finally {
    await refusing.upstream.close();
  }
  return outcomes;
}

interface Run {
  readonly index: number;
  readonly row: Row;
  readonly gateway: TestGateway;
  readonly refusing: Refusing;
  readonly isChosen: Chosen;
}

async function runRow(run: Run): Promise<readonly Outcome[]> {
  const { row, isChosen } = run;
  const found: Outcome[] = [];
  // oxlint-disable no-await-in-loop -- what was judged last belongs to what was asked last
  for (const client of clients) {
    for (const request of ordinary) {
      if (request.sees === true && !sees.test(row.model)) continue;
      if (!isChosen(row, client, request.name)) continue;
      found.push(
        await tryRequest(run, client, request.name, row.model, bodyFor(client, request), request.effort),
      );
    }
    for (const { name, body } of client === 'messages' ? agents : [])
      if (isChosen(row, client, name))
        found.push(await tryRequest(run, client, name, row.model, body, undefined));
    if (row.control === 'never' || row.control === 'always') continue;
    for (const suffix of suffixes)
      if (isChosen(row, client, suffix))
        found.push(
          await tryRequest(
            run,
            client,
            suffix,
            row.model + suffix,
            bodyFor(client, { name: suffix, wanted: { most: 8000 } }),
            suffix,
          ),
        );
  }
  // oxlint-enable no-await-in-loop
  return found;
}

async function tryRequest(
  { index, row, gateway, refusing }: Run,
  client: Client,
  request: string,
  model: string,
  body: Json,
  requestedEffort: Ordinary['effort'] | (typeof suffixes)[number],
): Promise<Outcome> {
  const { path, named } = pathFor(client, model, body['stream'] === true);
  const { stream, ...rest } = body;
  const inPath = client === 'generate-content' || client === 'converse';
  const sent = inPath || stream === undefined ? { ...named, ...rest } : { ...named, ...rest, stream };
  refusing.judgedFor(index);
  const answer = await fetch(gateway.url + path, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${gateway.key}`,
      'content-type': 'application/json',
      ...(client === 'messages' ? { 'anthropic-version': '2023-06-01' } : {}),
    },
    body: JSON.stringify(sent),
  });
  const text = await answer.text();
  const judged = refusing.judgedFor(index).at(-1);
  const losses = answer.headers.get('x-sluice-loss');
  return {
    row,
    client,
    request,
    ...became(answer.status, text, judged),
    ...effortOutcome(row, client, judged, requestedEffort),
    ...(losses === null ? {} : { losses }),
  };
}

function became(
  status: number,
  text: string,
  judged: Judged | undefined,
): Pick<Outcome, 'result' | 'status' | 'reason' | 'source'> {
  if (judged === undefined) return { result: 'declined', status, reason: text.slice(0, 200) };
  const { refused } = judged;
  if (refused !== undefined)
    return {
      result: 'refused',
      status,
      reason: refused.rule.says.replaceAll('$', refused.member),
      source: refused.rule.source,
    };
  return status === 200
    ? { result: 'accepted', status }
    : { result: 'failed', status, reason: text.slice(0, 200) };
}

function effortOutcome(
  row: Row,
  client: Client,
  judged: Judged | undefined,
  requestedEffort: string | undefined,
): Pick<Outcome, 'effort'> {
  const { control } = row;
  const byDefault = row.byDefault === true;
  const stops = row.stops === true;
  if (requestedEffort === undefined || judged === undefined || control === 'never' || control === 'always')
    return {};
  const { body } = judged;
  const isReached =
    requestedEffort === 'none'
      ? asksForNone(body, byDefault, stops)
      : requestedEffort === 'high' || requestedEffort === '-high'
        ? asksForMuch(body, control, byDefault, requestedEffort === 'high' && saysBudget.has(client))
        : asksForSome(body, byDefault);
  return { effort: isReached ? 'reached' : 'lost' };
}

/** Returns the report of a run: refusals with their reasons, and requested efforts that were lost. */
export function reportOf(outcomes: readonly Outcome[]): string {
  const count = (list: readonly Outcome[], result: Outcome['result']): number =>
    list.filter((one) => one.result === result).length;
  const lines = [
    `requests ${outcomes.length}: accepted ${count(outcomes, 'accepted')}, refused ${count(outcomes, 'refused')}, declined by the gateway ${count(outcomes, 'declined')}, failed ${count(outcomes, 'failed')}`,
    `efforts ${outcomes.filter(({ effort }) => effort !== undefined).length}: lost ${outcomes.filter(({ effort }) => effort === 'lost').length}`,
    '',
    'by client:',
    ...clients.map((client) => {
      const own = outcomes.filter((one) => one.client === client);
      return `  ${client}: ${own.length} requests, refused ${count(own, 'refused')}, declined ${count(own, 'declined')}, failed ${count(own, 'failed')}, efforts lost ${own.filter(({ effort }) => effort === 'lost').length} of ${own.filter(({ effort }) => effort !== undefined).length}`;
    }),
    '',
    'by kind and model:',
  ];
  const byRow = Map.groupBy(outcomes, ({ row: { kind, model } }) => `${kind} ${model}`);
  for (const [name, own] of byRow) {
    const bad = own.filter(({ result, effort }) => result !== 'accepted' || effort === 'lost');
    lines.push(
      `${name}: ${count(own, 'accepted')} of ${own.length} accepted, efforts lost ${own.filter(({ effort }) => effort === 'lost').length}`,
    );
    const byReason = Map.groupBy(
      bad,
      ({ request, result, reason, effort }) =>
        `${request}: ${result === 'accepted' ? `effort ${effort ?? ''}` : `${result}: ${reason ?? ''}`}`,
    );
    for (const [reason, list] of byReason) {
      const [first] = list;
      lines.push(
        `    ${reason.slice(0, 190)} [${list.map(({ client }) => client).join(', ')}]${first?.source === undefined ? '' : ` <${first.source.slice(0, 90)}>`}`,
      );
    }
  }
  return `${lines.join('\n')}\n`;
}

import { existsSync } from 'node:fs';
import { Agent, get, type IncomingMessage, type ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { parseSse } from '../../core/formats/_shared/sse.ts';
import { liveFrame, type LiveCall } from '../../plugins/admin/schemas/index.ts';
import { configWith, key, logIn, operate, password, type OperatedGateway } from '../reload/gateway.ts';
import { eventually } from '../support/eventually.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { SocketClient } from '../support/websocket.ts';
import { voices } from './_wire.ts';

const openai = fileURLToPath(new URL('../../channels/openai.ts', import.meta.url));

const start = (members: string): Promise<OperatedGateway> =>
  operate({ 'gateway.config.mjs': `import openai from '${openai}';\n${configWith(members)}` });

/** A request over a connection of its own, so that it may reach any worker. */
const fresh = (gateway: OperatedGateway, path: string, init: RequestInit = {}): Promise<Response> =>
  fetch(`${gateway.url}${path}`, { ...init, headers: { connection: 'close', ...init.headers } });

async function chat(
  gateway: OperatedGateway,
  words = 'hello',
  secret = key,
  model = 'demo',
): Promise<number> {
  const answer = await fresh(gateway, '/v1/chat/completions', {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: words }] }),
  });
  await answer.arrayBuffer();
  return answer.status;
}

const many = (count: number, gateway: OperatedGateway, words?: string, model?: string): Promise<number[]> =>
  Promise.all(Array.from({ length: count }, () => chat(gateway, words, key, model)));

/** The series of a scrape, whichever worker answers it. */
async function scrape(gateway: OperatedGateway): Promise<ReadonlyMap<string, number>> {
  const answer = await fresh(gateway, '/metrics');
  expect(answer.status).toBe(200);
  const found = new Map<string, number>();
  for (const line of (await answer.text()).split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    const [, series = '', value = ''] = /^(.*) (\S+)$/.exec(line) ?? [];
    expect(found.has(series)).toBe(false);
    found.set(series, Number(value));
  }
  return found;
}

/** Calls that the demo has answered, as a scrape tells it. */
async function counted(gateway: OperatedGateway): Promise<number> {
  const found = await scrape(gateway);
  return [...found]
    .filter(([series]) => series.startsWith('sluice_calls_total{') && series.includes('status="2xx"'))
    .reduce((sum, [, value]) => sum + value, 0);
}

describe('several workers are one', () => {
  let gateway: OperatedGateway;
  /** Two providers: one that answers when a test does it, and one that refuses as long as a test wants. */
  let holding: ScriptedUpstream;
  let refusing: ScriptedUpstream;
  const held: ServerResponse[] = [];
  let refuses = true;
  const sendWords = (response: ServerResponse): void =>
    void response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify(voices['chat-completions'].whole('words')));
  beforeAll(async () => {
    holding = await startUpstream((_request, response) => void held.push(response));
    refusing = await startUpstream((_request, response) => {
      if (refuses) response.writeHead(401).end('{"error":{"message":"Incorrect API key provided"}}');
      else sendWords(response);
    });
    gateway = await start(
      `workers: 3, channels: [
        demo(),
        openai({ key: 'k', baseUrl: '${holding.url}/v1', models: ['held'] }),
        openai({ id: 'broken', key: 'sk-upstream-0123456789', baseUrl: '${refusing.url}', models: ['known'], priority: 1 }),
        demo({ id: 'sound', models: { known: 'demo' } }),
      ]`,
    );
  });
  afterAll(async () => {
    // One that was stopped could not be ended in order.
    for (const pid of gateway.workers()) process.kill(pid, 'SIGCONT');
    await gateway.end();
    await holding.close();
    await refusing.close();
  });

  test('to who reads the metrics: one scrape has all, and no count goes down when workers are killed, hang, or are replaced', async () => {
    const seen: number[] = [];
    const count = async (): Promise<number> => {
      seen.push(await counted(gateway));
      return seen.at(-1) ?? 0;
    };
    expect(new Set(await many(30, gateway))).toEqual(new Set([200]));
    await expect.poll(count).toBe(30);
    const found = await eventually(async () => {
      const one = await scrape(gateway);
      expect(one.get('sluice_workers{state="answered"}')).toBe(3);
      return one;
    });
    expect([...found.keys()].filter((series) => series.includes('worker='))).toEqual([]);
    expect(found.get('sluice_workers{state="silent"}')).toBe(0);
    expect(found.get('sluice_call_duration_seconds_count{operation="chat",channel="demo"}')).toBe(30);
    expect(found.get('sluice_channel_standing{channel="demo",key="",standing="up"}')).toBe(1);
    expect(found.get('sluice_shared_store_up')).toBe(1);
    expect(found.get('process_resident_memory_bytes')).toBeGreaterThan(150 * 1024 * 1024);
    expect(found.get('nodejs_eventloop_lag_seconds')).toBeLessThan(10);

    const running = Promise.all(Array.from({ length: 6 }, () => chat(gateway, 'hello', key, 'held')));
    const { sendRequest: admin } = await logIn(gateway);
    await expect.poll(async () => (await scrape(gateway)).get('sluice_running_calls')).toBe(6);
    await expect.poll(async () => (await admin('GET', 'overview'))['running']).toBe(6);
    for (const response of held) sendWords(response);
    await running;
    await expect.poll(count).toBe(36);

    const [killed = 0, stopped = 0] = gateway.workers();
    process.kill(killed, 'SIGKILL');
    await gateway.logged('a worker crashed: starting another one');
    await expect.poll(async () => (await scrape(gateway)).get('sluice_workers{state="answered"}')).toBe(3);
    expect(await count()).toBe(36);

    process.kill(stopped, 'SIGSTOP');
    // Connections that are handed to the one that hangs wait with it.
    await expect
      .poll(async () => {
        const answer = await fresh(gateway, '/metrics', { signal: AbortSignal.timeout(3_000) }).catch(
          () => undefined,
        );
        return (await answer?.text())?.match(/sluice_workers\{state="silent"\} (\d)/)?.[1];
      })
      .toBe('1');
    process.kill(stopped, 'SIGCONT');
    await expect.poll(count).toBe(36);

    // Nobody reads these before their workers are gone.
    await many(14, gateway);
    const before = gateway.workers();
    gateway.signal('SIGHUP');
    await gateway.logged('reloaded: previous workers finish their calls');
    await expect.poll(() => before.filter((pid) => existsSync(`/proc/${pid}`))).toEqual([]);
    expect(await count()).toBe(50);
    await many(5, gateway);
    await expect.poll(count).toBe(55);
    console.log(`calls as scrapes told them: ${[...new Set(seen)].join(', ')}`);
    expect(seen).toEqual(seen.toSorted((one, other) => one - other));
  });

  test('in health: what one finds out about a channel spares the others', async () => {
    for (let count = 0; count < 30; count += 1) {
      // oxlint-disable-next-line no-await-in-loop -- each finds what those before it have found out
      expect(await chat(gateway, 'hello', key, 'known')).toBe(200);
    }
    console.log(
      `30 calls at 3 workers: the provider that refuses was asked ${refusing.requests.length} times`,
    );
    // Each worker alone would ask once, and the second call may come before the news of the first.
    expect(refusing.requests.length).toBeGreaterThanOrEqual(1);
    expect(refusing.requests.length).toBeLessThanOrEqual(2);
    const standing = async (): Promise<unknown[]> =>
      Promise.all(
        Array.from({ length: 8 }, async () => {
          const answer = (await (
            await fresh(gateway, '/readyz', { headers: { 'x-api-key': key } })
          ).json()) as {
            channels: Record<string, unknown>;
          };
          return JSON.stringify(answer.channels);
        }),
      );
    expect([...new Set(await standing())]).toHaveLength(1);
    expect((await standing())[0]).toContain('resting');

    refuses = false;
    const requestsBefore = refusing.requests.length;
    const { sendRequest: admin } = await logIn(gateway);
    await admin('POST', 'channels/broken/reset');
    await expect
      .poll(async () => (await standing()).every((one) => !String(one).includes('resting')))
      .toBe(true);
    expect(new Set(await many(12, gateway, 'hello', 'known'))).toEqual(new Set([200]));
    expect(refusing.requests.length - requestsBefore).toBe(12);
  });

  test('to a guesser: wrong passwords and wrong keys are told so however many there are, and shut nobody out', async () => {
    const guesses: number[] = [];
    for (let count = 0; count < 7; count += 1) {
      // oxlint-disable-next-line no-await-in-loop -- a guesser, one guess after the other
      guesses.push(await logInWith(gateway, 'a wrong password'));
    }
    expect(guesses).toEqual(Array<number>(7).fill(401));
    expect(await logInWith(gateway, password)).toBe(200);
    const keys = await Promise.all(
      Array.from({ length: 60 }, (_, index) => chat(gateway, 'hello', `sk-wrong-${index}-0123456789abcdef`)),
    );
    expect(keys).toEqual(Array<number>(60).fill(401));
    expect(await chat(gateway)).toBe(200);
  });

  test('to an operator: the live view shows the calls of all, also how one ends whose process is killed', async () => {
    const { cookie } = await session(gateway);
    // Both requests go over one connection, and so to one worker.
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => agent.destroy());
    const gatewayStatus = (await json(await got(gateway, '/api/admin/status', cookie, agent))) as {
      readonly worker: number;
      readonly workers: readonly { readonly worker: number; readonly pid: number }[];
    };
    const watching = gatewayStatus.workers.find(({ worker }) => worker === gatewayStatus.worker)?.pid;
    const live = await got(gateway, '/api/admin/live', cookie, agent);
    onTestFinished(() => void live.destroy());
    const calls = new Map<string, LiveCall>();
    let most = 0;
    let running = 0;
    let first: string | undefined;
    const reading = (async () => {
      let text = '';
      live.setEncoding('utf8');
      for await (const chunk of live) {
        text += chunk as string;
        const end = text.lastIndexOf('\n\n') + 2;
        for (const { event, data } of parseSse(text.slice(0, end))) {
          first ??= event;
          const frame = liveFrame.parse(JSON.parse(data));
          running = frame.running;
          most = Math.max(most, running);
          for (const call of frame.calls) calls.set(call.id, call);
        }
        text = text.slice(end);
      }
    })().catch(() => {});

    expect(new Set(await many(12, gateway, 'hello !slow-headers=1500'))).toEqual(new Set([200]));
    await expect.poll(() => [...calls.values()].filter(({ phase }) => phase === 'ended').length).toBe(12);
    expect(first).toBe('snapshot');
    expect(most).toBe(12);
    expect(running).toBe(0);
    // Ids begin differently in each process.
    expect(new Set([...calls.keys()].map((id) => id.slice(0, 20))).size).toBe(3);

    const cut = Promise.allSettled(
      Array.from({ length: 9 }, () => chat(gateway, 'hello !slow-headers=4000')),
    );
    await expect.poll(() => running).toBe(9);
    process.kill(gateway.workers().find((pid) => pid !== watching) ?? 0, 'SIGKILL');
    const outcomes = await cut;
    const lost = outcomes.filter(({ status }) => status === 'rejected').length;
    expect(lost).toBeGreaterThan(0);
    await expect
      .poll(() => [...calls.values()].filter(({ code }) => code === 'internal_error').length)
      .toBe(lost);
    await expect.poll(() => running).toBe(0);
    live.destroy();
    await reading;
  });
});

describe('a session over a WebSocket through a worker that is replaced', () => {
  const bearer = { headers: { authorization: `Bearer ${key}` } };
  let gateway: OperatedGateway;
  beforeAll(async () => {
    gateway = await start(
      `workers: 2, timeouts: { reload: 6000 }, channels: [demo(), demo({ id: 'slow', models: { slow: 'demo' }, pace: 200 })]`,
    );
  });
  afterAll(() => gateway.end());
  const reloaded = async (): Promise<void> => {
    const sentence = 'reloaded: previous workers finish their calls';
    const before = gateway.lines(sentence).length;
    gateway.signal('SIGHUP');
    await gateway.logged(sentence, before + 1);
  };

  test('goes on until the time for it has passed, and is closed then; a new one runs elsewhere', async () => {
    const before = gateway.workers();
    const open = (): Promise<SocketClient> =>
      SocketClient.open(`${gateway.url}/v1/realtime?model=demo`, bearer);
    const client = await open();
    const answer = async (one: SocketClient, count: number): Promise<void> => {
      one.send({ type: 'response.create' });
      await one.until(({ type }) => type === 'response.done', count);
    };
    await answer(client, 1);
    await reloaded();
    await answer(client, 2);
    const next = await open();
    await answer(next, 1);
    await answer(client, 3);
    const { code } = await client.closed;
    expect(code).toBe(1001);
    expect(client.messages.at(-1)).toMatchObject({ type: 'error' });
    await expect.poll(() => before.filter((pid) => existsSync(`/proc/${pid}`))).toEqual([]);
    await answer(next, 2);
    expect(next.socket.readyState).toBe(next.socket.OPEN);
    next.socket.close();
    await next.closed;
  });

  test('a call over it that is still running then ends with an error before the close', async () => {
    const client = await SocketClient.open(`${gateway.url}/v1/responses`, bearer);
    client.send({ type: 'response.create', model: 'slow', input: 'count !chunks=1000' });
    await client.until(({ type }) => type === 'response.output_text.delta');
    await reloaded();
    const begun = client.messages.length;
    const { code } = await client.closed;
    expect(code).toBe(1001);
    expect(client.messages.length).toBeGreaterThan(begun + 5);
    expect(client.messages.at(-1)).toMatchObject({ type: 'error' });
  });
});

async function logInWith(gateway: OperatedGateway, secret: string): Promise<number> {
  const answer = await fresh(gateway, '/api/admin/login', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ password: secret }),
  });
  await answer.arrayBuffer();
  return answer.status;
}

async function session(gateway: OperatedGateway): Promise<{ readonly cookie: string }> {
  const answer = await fresh(gateway, '/api/admin/login', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ password }),
  });
  await answer.arrayBuffer();
  return { cookie: answer.headers.get('set-cookie')?.split(';')[0] ?? '' };
}

/** An answer over a connection of this agent's. */
function got(gateway: OperatedGateway, path: string, cookie: string, agent: Agent): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    get(`${gateway.url}${path}`, { agent, headers: { cookie } }, resolve).on('error', reject);
  });
}

import type { Used } from './answering.ts';
import type { Done, Shot, StreamLoad, WholeLoad } from './load.ts';
import type { Child } from './processes.ts';
import { lastWords } from './replies.ts';
import { benchKey, type ProxyName, type Stage } from './stage.ts';

/** A proxy under test. */
export type Proxy = Child<{ readonly url: string }>;

/** What one run of a scenario cost. */
export interface Measured {
  /** Microseconds of the proxy's CPU per request or chunk. */
  readonly cpu: number;
  /** Kilobytes of memory per open stream, where that is measured. */
  readonly memory?: number;
  readonly failures: readonly string[];
}

/** One line of the table. */
export interface Scenario {
  readonly name: string;
  readonly title: string;
  /** What is counted. */
  readonly unit: 'request' | 'chunk';
  /** Sluice should cost at most so many times what raw costs. */
  readonly target?: number;
  /** Kilobytes that Sluice should take per open stream at most. */
  readonly memoryTarget?: number;
  /** True when each run needs a process that has done nothing else. */
  readonly fresh?: boolean;
  run(stage: Stage, proxy: Proxy, name: ProxyName, seconds: number): Promise<Measured>;
}

const headers = { 'content-type': 'application/json', authorization: `Bearer ${benchKey}` };
const messagesHeaders = { ...headers, 'anthropic-version': '2023-06-01' };

function chatShot(proxy: Proxy, model: string, text = 'Say something short.', stream = false): Shot {
  const body = {
    model,
    messages: [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: text },
    ],
    ...(stream ? { stream } : {}),
  };
  return { url: proxy.ready.url, path: '/v1/chat/completions', headers, body: JSON.stringify(body) };
}

function responsesShot(proxy: Proxy, model: string): Pick<StreamLoad, 'shot' | 'lastWords'> {
  const body = {
    model,
    instructions: 'Be brief.',
    input: 'Say something short.',
    stream: true,
    store: false,
  };
  return {
    shot: { url: proxy.ready.url, path: '/v1/responses', headers, body: JSON.stringify(body) },
    lastWords: lastWords.responses,
  };
}

async function costOf(proxy: Proxy, work: () => Promise<Done>): Promise<Measured> {
  const before = await proxy.ask<Used>('used');
  const { count, failures } = await work();
  const after = await proxy.ask<Used>('used');
  return { cpu: (after.cpu - before.cpu) / Math.max(1, count), failures };
}

/** Whole replies, one after the other in 64 lanes. */
function whole(
  name: string,
  title: string,
  target: number,
  shotFor: (proxy: Proxy) => Shot,
  atLeast = 300,
): Scenario {
  return {
    name,
    title,
    unit: 'request',
    target,
    run(stage, proxy, _name, seconds) {
      const load: WholeLoad = { shot: shotFor(proxy), concurrency: 64, seconds, atLeast };
      return costOf(proxy, () => stage.load.ask('whole', load));
    },
  };
}

const pace = 20;
const pacedStreams = 100;

/** Streams of one chunk each 20 ms, a hundred at a time. */
function paced(
  name: string,
  title: string,
  target: number,
  shotFor: (proxy: Proxy, proxyName: ProxyName, chunks: number) => Pick<StreamLoad, 'shot' | 'lastWords'>,
): Scenario {
  return {
    name,
    title,
    unit: 'chunk',
    target,
    run(stage, proxy, proxyName, seconds) {
      const chunks = Math.max(1, Math.round((seconds * 1000) / pace));
      const load: StreamLoad = {
        ...shotFor(proxy, proxyName, chunks),
        streams: pacedStreams,
        spread: pace,
        chunks,
      };
      return costOf(proxy, () => stage.load.ask('streams', load));
    },
  };
}

const openStreams = 1000;

const open: Scenario = {
  name: 'open',
  title: '1,000 open streams, 2 chunks/s each',
  unit: 'chunk',
  memoryTarget: 150,
  fresh: true,
  async run(stage, proxy, _name, seconds) {
    const shot = chatShot(proxy, 'bench-open-500', undefined, true);
    // A few streams first, so that code that is loaded and compiled once is not counted as theirs.
    await stage.load.ask('openStreams', { shot, streams: 20 });
    await stage.load.ask('closeStreams');
    const before = await proxy.ask<Used>('settled');
    await stage.load.ask('openStreams', { shot, streams: openStreams });
    await stage.load.ask('counted');
    const { cpu, failures } = await costOf(proxy, async () => {
      await new Promise((done) => setTimeout(done, Math.max(1, seconds) * 1000));
      return stage.load.ask<Done>('counted');
    });
    const after = await proxy.ask<Used>('settled');
    await stage.load.ask('closeStreams');
    return { cpu, failures, memory: (after.rss - before.rss) / 1024 / openStreams };
  },
};

const longText = 'All work and no play makes a long prompt. '.repeat(2400);

/** Every line of the table, in its order. */
export const scenarios: readonly Scenario[] = [
  whole('small', 'small whole reply', 1.8, (proxy) => chatShot(proxy, 'bench-small')),
  whole('alias', 'small whole reply, model renamed', 1.8, (proxy) => chatShot(proxy, 'bench-alias')),
  whole('large', '50 KB reply', 1.6, (proxy) => chatShot(proxy, 'bench-large'), 50_000),
  whole('request', '100 KB request', 1.9, (proxy) => chatShot(proxy, 'bench-small', longText)),
  paced('stream', 'paced stream', 1.3, (proxy, _name, chunks) => ({
    shot: chatShot(proxy, `bench-paced-${chunks}-${pace}`, undefined, true),
    lastWords: lastWords.chat,
  })),
  paced('translated', 'paced stream, chat client to messages channel', 2.1, (proxy, name, chunks) => {
    const shot = chatShot(proxy, `claude-bench-paced-${chunks}-${pace}`, undefined, true);
    // Raw translates nothing: its client speaks the provider's format.
    if (name === 'raw')
      return {
        shot: { ...shot, path: '/v1/messages', headers: messagesHeaders },
        lastWords: lastWords.messages,
      };
    return { shot, lastWords: lastWords.chat };
  }),
  paced('to-responses', 'paced stream, chat client to Responses channel', 2.1, (proxy, name, chunks) => {
    const model = `responses-bench-paced-${chunks}-${pace}`;
    return name === 'raw'
      ? responsesShot(proxy, model)
      : { shot: chatShot(proxy, model, undefined, true), lastWords: lastWords.chat };
  }),
  paced('from-responses', 'paced stream, Responses client to chat channel', 2.1, (proxy, name, chunks) => {
    const model = `bench-paced-${chunks}-${pace}`;
    return name === 'raw'
      ? { shot: chatShot(proxy, model, undefined, true), lastWords: lastWords.chat }
      : responsesShot(proxy, model);
  }),
  open,
];

import { describe, expect, test } from 'vitest';
import { OnlyPeer, type Peers } from '../../../../core/state/links/peers.ts';
import {
  PeersServer,
  WorkerPeers,
  type PeerConnection,
  type PrimaryPeerMessage,
  type WorkerPeerMessage,
} from '../../../../core/state/links/peers-primary.ts';
import { eventually } from '../../../support/eventually.ts';

const copied = <Message>(message: Message): Message => JSON.parse(JSON.stringify(message)) as Message;

/** A worker that is reached as another process is. `deaf`: it reads nothing. */
function joined(server: PeersServer, number: number) {
  let listener: ((news: PrimaryPeerMessage) => void) | undefined;
  const state = { deaf: false, gone: false };
  const line: PeerConnection = {
    send(word: WorkerPeerMessage, sent) {
      if (state.gone) {
        sent?.();
        return false;
      }
      const copy = copied(word);
      setImmediate(() => {
        server.receive(number, copy);
        sent?.();
      });
      return true;
    },
    listen(to) {
      listener = to;
    },
  };
  const peers = new WorkerPeers(line);
  server.join(number, (news) => {
    const copy = copied(news);
    setImmediate(() => {
      if (!state.deaf) listener?.(copy);
    });
    return true;
  });
  return { peers, state };
}

/** Answers with what it counted. */
function counting(peers: Peers, own: { count: number }): void {
  peers.answer('counts', (question) => ({
    value: { own: own.count, question },
    totals: { calls: own.count, [`of ${own.count}`]: 1 },
  }));
}

const numbers = (answers: readonly { readonly from: number }[]): number[] =>
  answers.map(({ from }) => from).toSorted((a, b) => a - b);

test('a process that is alone asks itself', async () => {
  const peers = new OnlyPeer();
  expect(await peers.gather('counts')).toMatchObject({ answers: [], totals: {} });
  const own = { count: 3 };
  const stop = peers.answer('counts', () => ({ value: own, totals: { calls: 3 } }));
  expect(await peers.gather('counts')).toEqual({
    answers: [{ from: process.pid, value: own }],
    silent: [],
    totals: { calls: 3 },
  });
  stop();
  expect((await peers.gather('counts'))?.answers).toEqual([]);
});

describe('workers', () => {
  test('answer with their own words, the one that asks among them, and what they counted is added up', async () => {
    const server = new PeersServer();
    const [one, two] = [joined(server, 1), joined(server, 2)];
    counting(one.peers, { count: 3 });
    counting(two.peers, { count: 4 });
    const gathered = await one.peers.gather('counts', { for: 'me' });
    expect(gathered?.answers).toContainEqual({ from: 2, value: { own: 4, question: { for: 'me' } } });
    expect(numbers(gathered?.answers ?? [])).toEqual([1, 2]);
    expect(gathered?.totals).toEqual({ calls: 7, 'of 3': 1, 'of 4': 1 });
    expect((await two.peers.gather('nothing'))?.answers).toEqual([]);
  });

  test('that do not answer in time are named, and count with what they told last, also when that came too late', async () => {
    const server = new PeersServer(100);
    const [one, two] = [joined(server, 1), joined(server, 2)];
    const other = { count: 4 };
    counting(one.peers, { count: 3 });
    counting(two.peers, other);
    await one.peers.gather('counts');
    two.state.deaf = true;
    other.count = 5;
    expect(await one.peers.gather('counts')).toMatchObject({ silent: [2], totals: { calls: 7 } });
    two.state.deaf = false;
    const late = Promise.withResolvers<{ value: number; totals: { calls: number } }>();
    two.peers.answer('counts', () => late.promise);
    expect(await one.peers.gather('counts')).toMatchObject({ silent: [2], totals: { calls: 7 } });
    late.resolve({ value: 6, totals: { calls: 6 } });
    await eventually(async () => expect((await one.peers.gather('counts'))?.totals.calls).toBe(9));
  });

  test('that have ended leave what they counted: by themselves, or as they told it last', async () => {
    const server = new PeersServer();
    const [one, two, three] = [joined(server, 1), joined(server, 2), joined(server, 3)];
    const own = { count: 5 };
    for (const [{ peers }, counted] of [
      [one, { count: 3 }],
      [two, { count: 4 }],
      [three, own],
    ] as const)
      counting(peers, counted);
    expect((await one.peers.gather('counts'))?.totals.calls).toBe(12);
    // One is killed, the other says good-bye.
    server.forget(2);
    own.count = 50;
    await three.peers.leave('counts', { calls: 50 });
    server.forget(3);
    const gathered = await one.peers.gather('counts');
    expect(gathered).toMatchObject({ silent: [], totals: { calls: 57 } });
    expect(numbers(gathered?.answers ?? [])).toEqual([1]);
    counting(joined(server, 4).peers, { count: 1 });
    expect((await one.peers.gather('counts'))?.totals.calls).toBe(58);
  });

  test('that end while they are asked hold nobody up', async () => {
    const server = new PeersServer(60_000);
    const [one, two] = [joined(server, 1), joined(server, 2)];
    counting(one.peers, { count: 3 });
    two.peers.answer('counts', () => new Promise(() => {}));
    const pending = one.peers.gather('counts');
    await new Promise((resolve) => setTimeout(resolve, 20));
    server.forget(2);
    expect(await pending).toMatchObject({ silent: [], totals: { calls: 3 } });
  });

  test('whose answer fails are silent, and the others are heard', async () => {
    const server = new PeersServer(60_000);
    const [one, two] = [joined(server, 1), joined(server, 2)];
    counting(one.peers, { count: 3 });
    two.peers.answer('counts', () => {
      throw new Error('broken');
    });
    expect(await one.peers.gather('counts')).toMatchObject({ silent: [2], totals: { calls: 3 } });
  });

  test('whose primary is gone, or hangs, are told so and never wait for ever', async () => {
    const { peers, state } = joined(new PeersServer(), 1);
    state.gone = true;
    expect(await peers.gather('counts')).toBeUndefined();
    await peers.leave('counts', { calls: 1 });
    const hanging = new WorkerPeers({ send: () => true, listen: () => {} });
    const many = await Promise.all(Array.from({ length: 300 }, () => hanging.gather('counts')));
    expect(many.every((one) => one === undefined)).toBe(true);
  });
});

test('one that takes no question now is silent at once', async () => {
  const server = new PeersServer(60_000);
  server.join(1, () => false);
  expect(await server.gather('counts')).toEqual({ answers: [], silent: [1], totals: {} });
});

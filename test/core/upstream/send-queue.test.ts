import { beforeEach, describe, expect, test } from 'vitest';
import type { WebSocket } from 'ws';
import { Gate } from '../../../core/sdk/gate.ts';
import { SendQueue } from '../../../core/upstream/send-queue.ts';

const most = 100;
let gate: Gate;
let queue: SendQueue;
let waiting: number;
let sent: { readonly data: Buffer; readonly binary: boolean | undefined }[];
let onSent: () => void;

beforeEach(() => {
  gate = new Gate();
  waiting = 0;
  sent = [];
  const socket = {
    get bufferedAmount() {
      return waiting;
    },
    send(data: Buffer, { binary }: { binary?: boolean }, done: () => void) {
      sent.push({ data, binary });
      waiting += data.length;
      onSent = done;
    },
  };
  queue = new SendQueue(socket as unknown as WebSocket, most, gate);
});

const send = (length: number, binary = false): void => queue.send({ data: Buffer.alloc(length), binary });
/** The socket has sent bytes. */
const taken = (length: number): void => {
  waiting -= length;
  onSent();
};

describe('what waits for a socket', () => {
  test('is sent as it is', () => {
    send(3, true);
    send(4);
    expect(sent).toEqual([
      { data: Buffer.alloc(3), binary: true },
      { data: Buffer.alloc(4), binary: false },
    ]);
  });

  test('holds back those who bring it once it is too much, until half is gone', () => {
    send(most);
    expect([gate.closed, queue.fullSince]).toEqual([false, 0]);
    send(1);
    expect(gate.closed).toBe(true);
    expect(queue.fullSince).toBeGreaterThan(0);
    taken(50);
    expect(gate.closed).toBe(true);
    taken(1);
    expect([gate.closed, queue.fullSince]).toEqual([false, 0]);
  });

  test('closes the gate once, however much comes on top, and tells since when', () => {
    send(most + 1);
    const since = queue.fullSince;
    send(1);
    send(1);
    expect(queue.fullSince).toBe(since);
    queue.letGo();
    expect([gate.closed, queue.fullSince]).toEqual([false, 0]);
  });

  test('opens no gate that others have closed', () => {
    gate.close();
    taken(0);
    queue.letGo();
    expect(gate.closed).toBe(true);
    send(most + 1);
    queue.letGo();
    queue.letGo();
    expect(gate.closed).toBe(true);
    gate.open();
    expect(gate.closed).toBe(false);
  });
});

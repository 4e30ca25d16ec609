import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { configWith, operate, type OperatedGateway } from '../reload/gateway.ts';

/** Three times what waits to be accepted unless a server asks for more. */
const many = 1_600;

/** Returns the maximum listen backlog of the system; 0 if unknown. */
function systemLimit(): number {
  try {
    return Number(readFileSync('/proc/sys/net/core/somaxconn', 'utf8'));
  } catch {
    return 0;
  }
}

let gateway: OperatedGateway;
const sockets: Socket[] = [];
beforeAll(async () => {
  gateway = await operate({ 'gateway.config.mjs': configWith('workers: 1, channels: [demo()]') });
});
afterAll(async () => {
  for (const socket of sockets) socket.destroy();
  await gateway.end();
});

test.runIf(systemLimit() > many)(
  'clients that all come while it is busy are let in: none must knock again, seconds later',
  async () => {
    // A process that stands still accepts nothing: whoever gets in now waits in the system's queue.
    const family = [gateway.pid, ...gateway.workers()];
    for (const pid of family) process.kill(pid, 'SIGSTOP');
    let connected = 0;
    for (let count = 0; count < many; count += 1) {
      const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1');
      socket.on('connect', () => (connected += 1)).on('error', () => {});
      sockets.push(socket);
    }
    try {
      await eventually(() => expect(connected).toBe(many));
    } finally {
      for (const pid of family) process.kill(pid, 'SIGCONT');
    }
    const answer = await fetch(`${gateway.url}/healthz`);
    expect(answer.status).toBe(200);
  },
);

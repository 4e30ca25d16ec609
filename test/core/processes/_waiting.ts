/**
 * A primary process whose only worker takes `--each` milliseconds for each connection, and writes on it how long it waited. The primary writes
 * its port, and how many connections it has turned away.
 */
import cluster from 'node:cluster';
import { createServer } from 'node:net';
import { parseArgs } from 'node:util';
import { handConnections, watchWaits } from '../../../core/processes/handed-connections.ts';

const { values } = parseArgs({ options: { each: { type: 'string', default: '100' } } });

if (cluster.isPrimary) {
  cluster.schedulingPolicy = cluster.SCHED_RR;
  const worker = cluster.fork();
  handConnections(worker.process, {
    maxWaiting: 20,
    lost: () => {},
    turnedAway: (count) => console.log(`turned away ${count}`),
  });
  worker.on('listening', ({ port }) => console.log(port));
} else {
  const waited = watchWaits();
  const server = createServer();
  server.on('connection', (socket) => {
    socket.end(String(waited()));
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Number(values.each));
  });
  server.listen(0, '127.0.0.1');
}

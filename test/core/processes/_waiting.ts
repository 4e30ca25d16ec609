/** A primary process whose only worker takes a while for each connection, and tells on it how long it waited. */
import cluster from 'node:cluster';
import { createServer } from 'node:net';
import { handConnections, watchWaits } from '../../../core/processes/handed-connections.ts';

if (cluster.isPrimary) {
  cluster.schedulingPolicy = cluster.SCHED_RR;
  const worker = cluster.fork();
  handConnections(worker.process, { lost: () => {} });
  worker.on('listening', ({ port }) => console.log(port));
} else {
  const waited = watchWaits();
  const server = createServer();
  server.on('connection', (socket) => {
    socket.end(String(waited()));
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
  });
  server.listen(0, '127.0.0.1');
}

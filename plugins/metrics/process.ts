/** Metrics of this process: memory, CPU, event loop. */
import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client';

let registry: Registry | undefined;

/** Returns the metrics of this process: memory, CPU, event loop, garbage collection, sockets. Collects them from the first call on. */
export function processMetrics(lostLogLines: () => number): Registry {
  if (registry === undefined) {
    // Once for the process, however many gateways it has, because an observer of garbage collection is never released.
    registry = new Registry();
    collectDefaultMetrics({ register: registry });
    const sockets: Gauge = new Gauge({
      name: 'sluice_open_sockets',
      help: 'Open TCP connections with clients, providers and stores.',
      registers: [registry],
      collect: () =>
        sockets.set(process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length),
    });
    const lost: Counter = new Counter({
      name: 'sluice_log_lines_lost_total',
      help: 'Log lines that could not be written, because the disk was full or nothing read the output.',
      registers: [registry],
      collect: () => {
        lost.reset();
        lost.inc(lostLogLines());
      },
    });
  }
  return registry;
}

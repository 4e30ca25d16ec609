import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { patience } from './patience.ts';

/** Several Redis servers of the test's own on 127.0.0.1, that keep nothing on disk. */
export interface RedisTopology {
  /** The address as an operator writes it. */
  readonly url: string;
  /** Ports of the servers, in the order in which they were started. */
  readonly ports: readonly number[];
  /** Runs `redis-cli` against a server. Returns what it prints. */
  cli(port: number, ...words: string[]): string;
  /** Ends one server at once, as a crash would. */
  kill(port: number): Promise<void>;
  /** Starts a server that was killed on its port, empty. */
  restart(port: number): void;
  close(): Promise<void>;
}

/** The password of all servers; the one of the Sentinels is another. */
export const serverPassword = 'a secret: 100%/@';
export const sentinelPassword = 'another: 50%/@';

const encoded = encodeURIComponent(serverPassword);

/** Starts one server with these options of its command line, such as `--tls-port`. */
export async function startRedisServer(
  ...options: string[]
): Promise<RedisTopology & { readonly port: number }> {
  const servers = await Servers.open();
  const [port = 0] = await freePorts(1);
  servers.start(port, options);
  return { ...servers.topology(`redis://127.0.0.1:${port}`), port };
}

/** Starts a cluster of three masters and three replicas. */
export async function startRedisCluster(): Promise<RedisTopology> {
  const servers = await Servers.open();
  const ports = await freePorts(6);
  for (const port of ports)
    servers.start(port, ['--cluster-enabled', 'yes', '--cluster-node-timeout', '1000', ...locked]);
  const topology = servers.topology(
    `redis+cluster://:${encoded}@${ports.map((port) => `127.0.0.1:${port}`).join(',')}`,
  );
  for (const port of ports) await until(() => topology.cli(port, 'PING').includes('PONG'));
  const hosts = ports.map((port) => `127.0.0.1:${port}`);
  const created = topology.cli(
    ports[0] ?? 0,
    '--cluster',
    'create',
    ...hosts,
    '--cluster-replicas',
    '1',
    '--cluster-yes',
  );
  if (!created.includes('All 16384 slots covered')) throw new Error(`The cluster was not made: ${created}`);
  for (const port of ports)
    await until(() => {
      const info = topology.cli(port, 'CLUSTER', 'INFO');
      return info.includes('cluster_state:ok') && info.includes('cluster_known_nodes:6');
    });
  // A master that dies before its replica has followed it has no successor.
  await until(() => ports.filter((port) => topology.cli(port, 'ROLE').includes('connected')).length === 3);
  return topology;
}

/** Starts a master with two replicas and three Sentinels; the ports of the servers come first. */
export async function startSentinels(): Promise<RedisTopology & { master(): number }> {
  const servers = await Servers.open();
  const ports = await freePorts(6);
  const [master = 0, ...others] = ports.slice(0, 3);
  servers.start(master, locked);
  for (const port of others) servers.start(port, [...locked, '--replicaof', `127.0.0.1 ${master}`]);
  const sentinels = ports.slice(3);
  for (const port of sentinels) servers.startSentinel(port, master);
  const topology = servers.topology(
    `redis+sentinel://:${encoded}@${sentinels.map((port) => `127.0.0.1:${port}`).join(',')}/mymaster`,
  );
  const cli = (port: number, ...words: string[]): string =>
    topology.cli(port, '-a', sentinelPassword, '--no-auth-warning', ...words);
  const masterPort = (): number =>
    Number(cli(sentinels[0] ?? 0, 'SENTINEL', 'GET-MASTER-ADDR-BY-NAME', 'mymaster').split('\n')[1]);
  // A failover needs replicas and other Sentinels that are known.
  for (const port of sentinels)
    await until(() => /OK 3 usable/.test(cli(port, 'SENTINEL', 'CKQUORUM', 'mymaster')));
  for (const port of sentinels)
    await until(
      () => cli(port, 'SENTINEL', 'REPLICAS', 'mymaster').split('master-link-status\nok').length === 3,
    );
  return { ...topology, master: masterPort };
}

const locked = ['--requirepass', serverPassword, '--masterauth', serverPassword];

async function until(check: () => boolean): Promise<void> {
  const end = performance.now() + patience.wait;
  while (!check()) {
    if (performance.now() > end) throw new Error('The servers did not find each other.');
    await setTimeout(50);
  }
}

/** The processes, and their files. */
class Servers {
  readonly #folder: string;
  readonly #running = new Map<number, ChildProcess>();
  readonly #words = new Map<number, readonly string[]>();

  private constructor(folder: string) {
    this.#folder = folder;
  }

  static async open(): Promise<Servers> {
    return new Servers(mkdtempSync(join(tmpdir(), 'sluice-redis-')));
  }

  start(port: number, options: readonly string[]): void {
    const file = join(this.#folder, `nodes-${port}.conf`);
    const net = `--port ${options.includes('--tls-port') ? 0 : port} --bind 127.0.0.1`;
    const keep = `--appendonly no --dir ${this.#folder} --dbfilename ${port}.rdb --cluster-config-file ${file}`;
    // A busy machine starts a replica late, and the master need not wait for more of them.
    const words = `${net} ${keep} --repl-diskless-sync-delay 0`.split(' ');
    const own = options.map((word) => (word === 'PORT' ? String(port) : word));
    this.#spawn(port, [...words, '--save', '', ...own]);
  }

  startSentinel(port: number, master: number): void {
    const file = join(this.#folder, `sentinel-${port}.conf`);
    const lines = [
      `port ${port}`,
      'bind 127.0.0.1',
      `dir "${this.#folder}"`,
      `requirepass "${sentinelPassword}"`,
      `sentinel monitor mymaster 127.0.0.1 ${master} 2`,
      `sentinel auth-pass mymaster "${serverPassword}"`,
      `sentinel sentinel-pass "${sentinelPassword}"`,
      'sentinel down-after-milliseconds mymaster 1000',
      'sentinel failover-timeout mymaster 3000',
    ];
    writeFileSync(file, `${lines.join('\n')}\n`);
    this.#spawn(port, [file, '--sentinel']);
  }

  topology(url: string): RedisTopology {
    const ports = [...this.#words.keys()];
    return {
      url,
      ports,
      cli(port, ...words) {
        const { stdout, stderr } = spawnSync(
          'redis-cli',
          ['-p', String(port), '-a', serverPassword, '--no-auth-warning', ...words],
          { encoding: 'utf8' },
        );
        return stdout + stderr;
      },
      kill: (port) => this.#kill(port),
      restart: (port) => this.#spawn(port, this.#words.get(port) ?? []),
      close: async () => {
        await Promise.all(ports.map((port) => this.#kill(port)));
        rmSync(this.#folder, { recursive: true, force: true, maxRetries: 3 });
      },
    };
  }

  #spawn(port: number, words: readonly string[]): void {
    this.#words.set(port, words);
    this.#running.set(port, spawn('redis-server', words, { stdio: 'ignore', cwd: this.#folder }));
  }

  async #kill(port: number): Promise<void> {
    const child = this.#running.get(port);
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }
}

/** Free ports, each with a free one 10,000 above it, where a node of a cluster talks to the others. */
async function freePorts(count: number): Promise<number[]> {
  const found = new Set<number>();
  for (let tries = 0; found.size < count && tries < 500; tries += 1) {
    const port = 10_000 + Math.floor(Math.random() * 9_000);
    if ((await isFree(port)) && (await isFree(port + 10_000))) found.add(port);
  }
  return [...found];
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}

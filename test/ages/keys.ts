import { hash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { keyId } from './fill.ts';
import type { Statements } from './statements.ts';
import { startAged, type AgedGateway } from './gateway.ts';
import { measure } from './measure.ts';

/** Number of keys whose secrets are known here. */
const coldKeys = 40;

const secretOf = (index: number): string => `sk-ages-cold-${String(index).padStart(35, '0')}`;

/** Adds keys that calls can be made with. */
export async function fillColdKeys(statements: Statements): Promise<void> {
  const [row] = await statements.run("SELECT key, value FROM keyv WHERE namespace = 'api-keys' LIMIT 1");
  const value = String(row?.['value']);
  const [, id = ''] = /"id":"([^"]+)"/.exec(value) ?? [];
  for (let index = 0; index < coldKeys; index += 1) {
    const digest = hash('sha256', secretOf(index));
    const own = value
      .replace(String(row?.['key']), digest)
      .replace(id, `key_cold${String(index).padStart(12, '0')}`);
    await statements.run(
      `INSERT INTO keyv (namespace, key, value) VALUES ('api-keys', '${digest}', '${own.replaceAll("'", "''")}')`,
    );
  }
}

/** Prints what keys cost the gateway of a tree: twice, because the first start may have to change the database. */
export async function reportKeys(
  tree: string,
  url: string,
  keys: number,
  statements: Statements,
): Promise<void> {
  const first = await startAged(tree, url);
  console.log(`\n${tree}\nfirst start: ${describe(first)}`);
  const begun = performance.now();
  while (await hasLeft(statements)) await pause(200);
  console.log(
    `keys from before were put in place after ${((performance.now() - begun) / 1_000).toFixed(1)} s`,
  );
  await first.end();
  await statements.run(url.startsWith('sqlite:') ? 'ANALYZE' : 'VACUUM ANALYZE');
  const gateway = await startAged(tree, url);
  try {
    console.log(`start: ${describe(gateway)}`);
    const known: number[] = [];
    const cold: number[] = [];
    for (let count = 0; count < 100; count += 1) await gateway.call();
    for (let index = 0; index < coldKeys; index += 1) {
      known.push(await gateway.call());
      cold.push(await gateway.call(secretOf(index)));
    }
    console.log(
      `a call: ${median(known)} ms; the first call of a key: ${median(cold)} ms (medians of ${coldKeys})`,
    );
    console.log('| read | ms | CPU ms of the worker | slowest call ms |\n|---|---|---|---|');
    for (const { name, ms, mainCpu, slowestCall } of await measure(gateway, readsOf(keys), statements, {
      isSqlite: true,
      times: 3,
    }))
      console.log(
        `| ${name} | ${[ms, mainCpu, slowestCall].map((figure) => figure.toFixed(1)).join(' | ')} |`,
      );
    console.log(`memory afterwards: ${megabytes(gateway)}`);
  } finally {
    await gateway.end();
  }
}

function readsOf(keys: number): readonly (readonly [name: string, path: string])[] {
  const search = (text: string): string => `keys?limit=50&search=${encodeURIComponent(text)}`;
  return [
    ['list', 'keys?limit=50'],
    ['search for what all have', search('team')],
    ['search for what only old ones have', search('team 17')],
    ['search for one by a part of its id', search(keyId(keys - 3).slice(-12))],
    ['search for what none has', search('nobody has this')],
    ['search for two characters that none has', search('ß?')],
    ['one key', `keys/${keyId(Math.floor(keys / 2))}`],
  ];
}

async function hasLeft(statements: Statements): Promise<boolean> {
  try {
    return (await statements.run('SELECT 1 FROM api_keys_filling')).length > 0;
  } catch {
    // A version that has no such table.
    return false;
  }
}

/** Says what the start of a gateway has cost. */
export function describe(gateway: AgedGateway): string {
  return `${gateway.startMs.toFixed(0)} ms, CPU ${gateway.startCpu.toFixed(0)} ms, memory ${megabytes(gateway)}`;
}

function megabytes(gateway: AgedGateway): string {
  const [primary, ...workers] = gateway.memory().map((bytes) => (bytes / 2 ** 20).toFixed(0));
  return `${primary} MB${workers.length === 0 ? '' : ` of the primary, ${workers.join(' and ')} MB of workers`}`;
}

function median(figures: readonly number[]): string {
  return (figures.toSorted((one, other) => one - other)[Math.floor(figures.length / 2)] ?? 0).toFixed(2);
}

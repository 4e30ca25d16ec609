import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { fuzzedBodies } from './bodies.ts';
import { asSent, forward } from './forwarding.ts';
import { digestOf, tableFile, type KeptTable } from './kept.ts';

/** Written by `record.ts --write`, which needs Python. */
const table = JSON.parse(readFileSync(tableFile, 'utf8')) as KeptTable;
const kept = table.bodies;

describe(`odd forms, as Starlette ${table.versions['starlette']} with python-multipart ${table.versions['python-multipart']} reads what is forwarded`, () => {
  test('are read as the same fields and files as the gateway judges', async () => {
    expect(kept.length).toBeGreaterThan(100);
    for (const { type, body, sent, read } of kept) {
      const forwarded = await forward({ type, bytes: Buffer.from(body, 'base64') });
      expect({ body, parts: forwarded && asSent(forwarded.parts) }).toEqual({ body, parts: read });
      // The answers hold for these bytes only: where they change, `record.ts` must ask Starlette again.
      expect({ body, sent: forwarded && digestOf(forwarded.sent) }).toEqual({ body, sent });
      if (forwarded?.upload !== undefined)
        expect({ body, sent: digestOf(forwarded.upload) }).toEqual({ body, sent });
    }
  });

  test('are the only ones of their seed that the gateway accepts', async () => {
    const accepted: string[] = [];
    for (const { type, bytes } of fuzzedBodies(table.seed, table.drawn))
      if ((await forward({ type, bytes })) !== undefined) accepted.push(bytes.toString('base64'));
    expect(accepted).toEqual(kept.map(({ body }) => body));
  });
});

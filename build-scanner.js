// Makes core/formats/_shared/outline/code.ts of scan.wat beside it: `npm run scanner`. With --check it writes nothing, and fails where the two differ.
import { readFileSync, writeFileSync } from 'node:fs';
import wabt from 'wabt';

const source = new URL('core/formats/_shared/outline/scan.wat', import.meta.url);
const target = new URL('core/formats/_shared/outline/code.ts', import.meta.url);
const { parseWat } = await wabt();
const module = parseWat('scan.wat', readFileSync(source, 'utf8'), { simd: true, bulk_memory: true });
module.validate();
const code = Buffer.from(module.toBinary({}).buffer).toString('base64');
const lines = code.match(/.{1,100}/g) ?? [];
const text = `/** The module of scan.wat, in base64: \`npm run scanner\` writes this file. */
export const code =
  ${lines.map((line) => `'${line}'`).join(' +\n  ')};
`;
if (process.argv.includes('--check')) {
  if (readFileSync(target, 'utf8') !== text) {
    console.error('code.ts is not what scan.wat says: run npm run scanner.');
    process.exit(1);
  }
} else writeFileSync(target, text);

// Makes the code.ts beside each module that is written in WebAssembly's text format: `npm run scanner`. With --check it writes nothing, and
// fails where the two differ.
import { readFileSync, writeFileSync } from 'node:fs';
import wabt from 'wabt';

const { parseWat } = await wabt();

for (const source of ['outline/scan.wat', 'long/texts.wat']) {
  const [folder, name] = source.split('/');
  const place = new URL(`./${folder}/`, import.meta.url);
  const module = parseWat(name, readFileSync(new URL(name, place), 'utf8'), {
    simd: true,
    bulk_memory: true,
  });
  module.validate();
  const code = Buffer.from(module.toBinary({}).buffer).toString('base64');
  const lines = code.match(/.{1,100}/g) ?? [];
  const text = `/** The module of ${name}, in base64: \`npm run scanner\` writes this file. */
export const code =
  ${lines.map((line) => `'${line}'`).join(' +\n  ')};
`;
  const target = new URL('code.ts', place);
  if (!process.argv.includes('--check')) {
    writeFileSync(target, text);
  } else if (readFileSync(target, 'utf8') !== text) {
    console.error(`${folder}/code.ts is not what ${name} says: run npm run scanner.`);
    process.exitCode = 1;
  }
}

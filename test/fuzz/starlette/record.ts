/**
 * `node --conditions=sluice-source test/fuzz/starlette/record.ts`: sends odd forms through the gateway's parser, and what that forwards to
 * Starlette, which must read the same fields and files. `--python PATH` is a Python that has `starlette` and `python-multipart`, `--seed N`
 * draws other bodies, `--bodies N` more. `--write` keeps the bodies that the gateway accepts, with the answers of Starlette, for the tests.
 * `--originals` shows which of these Starlette would read in another way as the client wrote them, which is why they are encoded anew.
 * Exits with 1 where Starlette reads something else in what is forwarded.
 */
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { isDeepStrictEqual, parseArgs } from 'node:util';
import { fuzzedBodies, type FuzzedBody } from './bodies.ts';
import { asSent, forward, type ReadPart } from './forwarding.ts';
import { digestOf, tableFile, type KeptBody } from './kept.ts';

const { values } = parseArgs({
  options: {
    python: { type: 'string', default: 'python3' },
    seed: { type: 'string', default: '1' },
    bodies: { type: 'string', default: '1000' },
    write: { type: 'boolean', default: false },
    originals: { type: 'boolean', default: false },
  },
});

interface Answer {
  readonly parts?: readonly ReadPart[];
  readonly error?: string;
}

const python = spawn(values.python, [new URL('read.py', import.meta.url).pathname], {
  stdio: ['pipe', 'pipe', 'inherit'],
});
const lines = createInterface(python.stdout)[Symbol.asyncIterator]();

async function line(): Promise<unknown> {
  const { value, done } = await lines.next();
  if (done === true) throw new Error('Python ended: are starlette and python-multipart installed?');
  return JSON.parse(value);
}

async function readByStarlette({ type, bytes }: FuzzedBody): Promise<Answer> {
  python.stdin.write(`${JSON.stringify({ type, body: bytes.toString('base64') })}\n`);
  return (await line()) as Answer;
}

const versions = (await line()) as Record<string, string>;
const counts = {
  bodies: 0,
  accepted: 0,
  uploads: 0,
  different: 0,
  refused: 0,
  otherwise: 0,
};
const kept: KeptBody[] = [];
/** Returns the parts without names and types of files, which frameworks derive in ways of their own. */
const contentsOf = (parts?: readonly ReadPart[]): unknown =>
  parts?.map(({ name, filename, content }) => ({ name, isFile: filename !== null, content }));
const show = (body: FuzzedBody): string => `${body.type} ${JSON.stringify(body.bytes.toString())}`;

for (const body of fuzzedBodies(Number(values.seed), Number(values.bodies))) {
  counts.bodies += 1;
  const forwarded = await forward(body, 1 + (counts.bodies % 40));
  if (forwarded === undefined) {
    counts.refused += 1;
    continue;
  }
  counts.accepted += 1;
  const parts = asSent(forwarded.parts);
  const answer = await readByStarlette(forwarded.sent);
  const uploaded = forwarded.upload && (await readByStarlette(forwarded.upload));
  if (uploaded !== undefined) counts.uploads += 1;
  for (const [sent, read] of [
    [forwarded.sent, answer],
    [forwarded.upload, uploaded],
  ] as const) {
    if (sent === undefined || isDeepStrictEqual(read?.parts, parts)) continue;
    counts.different += 1;
    console.log(
      `different: ${show(body)}\n  sent ${show(sent)}\n  here ${JSON.stringify(parts)}\n  there ${JSON.stringify(read)}`,
    );
  }
  const original = await readByStarlette(body);
  if (!isDeepStrictEqual(contentsOf(original.parts), contentsOf(parts))) {
    counts.otherwise += 1;
    if (values.originals)
      console.log(
        `original: ${show(body)}\n  here ${JSON.stringify(parts)}\n  there ${JSON.stringify(original)}`,
      );
  }
  kept.push({
    type: body.type,
    body: body.bytes.toString('base64'),
    sent: digestOf(forwarded.sent),
    read: answer.parts ?? [],
  });
}
python.stdin.end();
if (values.write) {
  const rows = kept.map((row) => JSON.stringify(row)).join(',\n');
  writeFileSync(
    tableFile,
    `{"versions":${JSON.stringify(versions)},"seed":${values.seed},"drawn":${counts.bodies},"bodies":[\n${rows}\n]}\n`,
  );
}
console.log(JSON.stringify({ versions, ...counts }));
process.exitCode = counts.different === 0 ? 0 : 1;

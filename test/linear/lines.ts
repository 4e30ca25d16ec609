import chatCompletions from '../../core/formats/chat-completions/index.ts';
import { RequestLines } from '../../plugins/provider-objects/request-lines.ts';
import type { Work } from './measure.ts';

const limits = { body: Infinity, depth: 1000, values: Infinity, members: Infinity };
const lineOf = (content: string): string =>
  `{"custom_id":"a","url":"/v1/chat/completions","body":{"model":"m","messages":[${content}]}}\n`;
const hello = '{"role":"user","content":"Hello"}';

/** Files of requests. */
export const files: readonly { readonly name: string; make(size: number): string }[] = [
  { name: 'many lines', make: (size) => lineOf(hello).repeat(size) },
  { name: 'a long line', make: (size) => lineOf(hello.replace('Hello', 'a'.repeat(64 * size))) },
  { name: 'many values in a line', make: (size) => lineOf(`${'{},'.repeat(size)}{}`) },
  {
    name: 'lines from which a member is dropped',
    make: (size) => lineOf(`${hello}],"temperature":0,"top_p":0.9,"stop":[`).repeat(size),
  },
  { name: 'empty lines', make: (size) => '{'.padEnd(64 * size, '\n') },
];

/** Reads the lines of a file. */
export function requestLines(): RequestLines {
  const tools = { formats: () => chatCompletions, limits, sampling: 'exclusive' as const };
  return new RequestLines('chat-completions', tools);
}

/** Lines of batches, in long and in short pieces. */
export function lineWork(): Work[] {
  return files.flatMap(({ name, make }) =>
    [1, 64, 64 * 1024].map((length): Work => ({
      part: 'batches: read lines',
      shape: `${name}, in reads of ${length} bytes`,
      oneStep: false,
      most: 128 * 1024,
      make: (size) => {
        const bytes = Buffer.from(make(size));
        return {
          bytes: bytes.length,
          async run() {
            const lines = requestLines();
            for (let at = 0; at < bytes.length; at += length)
              // oxlint-disable-next-line no-await-in-loop -- one piece after the other
              await lines.push(bytes.subarray(at, at + length));
            lines.end();
            lines.close();
          },
        };
      },
    })),
  );
}

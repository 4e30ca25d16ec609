/**
 * Lines as pino writes them, each with one call of `JSON.stringify`. Pino joins a line of some 60 pieces, and whoever reads the line puts them
 * together: a small call through `sluice start` took 1.02 times the CPU (November 2026). The test compares each line with pino's.
 */
import { pino, type Logger } from 'pino';
import { shownFields, shownText, type Fields } from './fields.ts';

/** Returns true for fields that pino writes as JSON does. It writes errors in a way of its own. */
export function isPlainFields(fields: unknown): fields is Fields {
  return (
    typeof fields === 'object' &&
    fields !== null &&
    Object.getPrototypeOf(fields) === Object.prototype &&
    (fields as Fields).error === undefined
  );
}

/** Returns the line of plain fields, with its end. */
export function lineOf(logger: Logger, level: number, fields: Fields, text: string): string {
  const { [pino.symbols.chindingsSym]: bindings } = logger as unknown as { readonly [name: symbol]: string };
  const members = JSON.stringify(shownFields(fields)).slice(1, -1);
  const label = logger.levels.labels[level] ?? '';
  const comma = members === '' ? '' : ',';
  const message = JSON.stringify(shownText(text));
  return `{"level":"${label}"${timeMember()}${bindings ?? ''}${comma}${members},"msg":${message}}\n`;
}

let second = -1;
let beginning = '';

/** Returns the time as a member of a line, with a comma before it. Caches the part that stays the same for a second. */
export function timeMember(): string {
  const now = Date.now();
  const milliseconds = now % 1_000;
  if (now - milliseconds !== second) {
    second = now - milliseconds;
    beginning = `,"time":"${new Date(second).toISOString().slice(0, -'000Z'.length)}`;
  }
  return `${beginning}${String(milliseconds).padStart(3, '0')}Z"`;
}

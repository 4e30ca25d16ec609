import { writeSync } from 'node:fs';
import { pino, type DestinationStream, type Logger } from 'pino';

/** Writes structured lines: first what happened as data, then a sentence. */
export type Log = Pick<Logger, 'debug' | 'info' | 'warn' | 'error' | 'fatal'> & {
  child(bindings: Record<string, unknown>): Log;
  /**
   * A line whose fields are plain JSON (texts, numbers, lists, objects), written in one go: a third of the cost of the others, for
   * what is logged once a call.
   */
  plain(level: 'debug' | 'info', fields: object, sentence: string): void;
};

/** Levels a log may have, loudest last. */
export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

const secretFields = new Set([
  'authorization',
  'cookie',
  'key',
  'keys',
  'apiKey',
  'api_key',
  'password',
  'secret',
  'token',
]);

/** The same fields with those replaced that hold secrets by their name; copied only where there is something to replace. */
function withoutSecrets(fields: Record<string, unknown>, depth = 0): Record<string, unknown> {
  let clean: Record<string, unknown> | undefined;
  for (const name in fields) {
    const value = fields[name];
    if (value === undefined) continue;
    const masked = secretFields.has(name)
      ? '…'
      : depth < 4 && isPlain(value)
        ? withoutSecrets(value, depth + 1)
        : value;
    if (masked === value) continue;
    clean ??= { ...fields };
    clean[name] = masked;
  }
  return clean ?? fields;
}

function isPlain(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** What credentials look like: known beginnings, and a short word before a long run of mixed characters. */
const secretShapes =
  /\b(?:(Bearer\s+)[A-Za-z0-9._~+/=-]{8,}|(sk-|gsk_|pplx-|nvapi-|hf_|AIza|AKIA|ya29\.)[A-Za-z0-9._~+/-]{8,}|([a-z]{1,8}[-_])(?=[A-Za-z0-9]*\d)(?=[A-Za-z0-9]*[A-Z])[A-Za-z0-9]{20,})|([?&]key=)[^&\s"\\]+/g;

/** Finds in a tenth of the time whether there is anything for {@link secretShapes} to find: nearly always there is not. */
const secretHints =
  /Bearer\s|sk-|gsk_|pplx-|nvapi-|hf_|AIza|AKIA|ya29\.|[?&]key=|[-_](?=[a-z0-9]*[A-Z])[A-Za-z0-9]{20}/;

/** Secrets of this process that need not look like any, as they stand in JSON. */
const known = new Set<string>();

/** From now on this text is masked wherever it turns up in the log. */
export function hideSecret(value: string): void {
  if (value.length >= 8) known.add(JSON.stringify(value).slice(1, -1));
}

/** Text with everything replaced that is known to be a secret or looks like one. */
export function maskSecrets(text: string): string {
  let masked = text;
  if (secretHints.test(text)) {
    masked = text.replaceAll(
      secretShapes,
      (_found, bearer?: string, prefix?: string, word?: string, parameter?: string) =>
        `${bearer ?? prefix ?? word ?? parameter ?? ''}…`,
    );
  }
  for (const secret of known) if (masked.includes(secret)) masked = masked.replaceAll(secret, '…');
  return masked;
}

/**
 * The process's log: JSON lines on standard output, written in the background. Fields that hold secrets are replaced, and so is whatever
 * {@link maskSecrets} finds anywhere in a line.
 */
export function createLog(level: string, destination: Destination = standardOutput()): Log {
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: {
      level: (label: string) => ({ level: label }),
      log: (fields: Record<string, unknown>) => withoutSecrets(fields),
    },
    serializers: { error: serializeError },
  };
  const output = masking(destination);
  return withPlain(pino(options, output), output);
}

function withPlain(logger: Logger, output: DestinationStream): Log {
  // Bound to the logger when they are first needed: pino keeps them as text.
  let bindings: string | undefined;
  const child = logger.child.bind(logger);
  return Object.assign(logger, {
    child: (more: Record<string, unknown>) => withPlain(child(more), output),
    plain(level: 'debug' | 'info', fields: object, sentence: string) {
      if (!logger.isLevelEnabled(level)) return;
      bindings ??= members(logger.bindings());
      const own = members(withoutSecrets(fields as Record<string, unknown>));
      output.write(`{"level":"${level}","time":"${timeNow()}"${bindings}${own},"msg":${quoted(sentence)}}\n`);
    },
  });
}

/** The members of an object as they stand in JSON behind others. */
function members(object: object): string {
  const json = JSON.stringify(object);
  return json === '{}' ? '' : `,${json.slice(1, -1)}`;
}

let second = '';
let secondBegan = 0;

/** The time as ISO text: its whole seconds are written once, and only the milliseconds for each line. */
function timeNow(): string {
  const now = Date.now();
  const past = now - secondBegan;
  if (past >= 1000 || past < 0) {
    secondBegan = now - (now % 1000);
    second = new Date(secondBegan).toISOString().slice(0, 20);
  }
  return `${second}${String(now - secondBegan).padStart(3, '0')}Z`;
}

const sentences = new Map<string, string>();

/** A sentence as JSON: there are few, and they repeat. */
function quoted(sentence: string): string {
  let text = sentences.get(sentence);
  if (text === undefined) {
    text = JSON.stringify(sentence);
    if (sentences.size < 100) sentences.set(sentence, text);
  }
  return text;
}

/** Most characters gathered before they are written, and the longest that they wait, in milliseconds. */
const most = 131_072;
const longest = 250;

/** Where lines go. `gathers` says that they may come many at a time. */
type Destination = DestinationStream & { flush?(): void; flushSync?(): void; readonly gathers?: boolean };

/** A person at a terminal sees each line at once; elsewhere lines are gathered, since a write each costs more than the line. */
function standardOutput(): Destination {
  const gathers = process.stdout.isTTY !== true;
  // What is written below `minLength` waits for a flush: a write under way when the process ends would be lost.
  const destination = pino.destination({
    dest: 1,
    sync: false,
    ...(gathers ? { minLength: 2 * most, maxWrite: 4 * most } : {}),
  });
  return Object.assign(destination, { gathers });
}

function serializeError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { code } = error as { code?: unknown };
  const cause = error.cause instanceof Error ? `${error.cause.name}: ${error.cause.message}` : undefined;
  return { name: error.name, code, message: error.message, cause, stack: error.stack };
}

/** Writes text to the standard output at once; false when nobody reads it any more. */
function wroteLast(text: string): boolean {
  let rest = Buffer.from(text);
  for (let tries = 0; rest.length > 0 && tries < 100; tries += 1) {
    try {
      rest = rest.subarray(writeSync(1, rest));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return false;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
    }
  }
  return rest.length === 0;
}

/** Masks whole lines: a secret may stand in a field, in a list, or in the text of an error's cause. */
function masking(destination: Destination): DestinationStream & { flushSync(): void } {
  let gathered = '';
  let timer: NodeJS.Timeout | undefined;
  const pass = (): void => {
    clearTimeout(timer);
    timer = undefined;
    if (gathered === '') return;
    const lines = maskSecrets(gathered);
    gathered = '';
    destination.write(lines);
  };
  const flush = (): void => {
    pass();
    if (destination.gathers === true) destination.flush?.();
  };
  const flushSync = (): void => {
    // Its own waiting for a pipe that nobody reads any more never ends: the last lines go out here, and tell whether somebody does.
    if (destination.gathers !== true) pass();
    else if (!wroteLast(maskSecrets(gathered))) return;
    gathered = '';
    destination.flushSync?.();
  };
  if (destination.gathers === true) process.once('exit', flushSync);
  return {
    write(line) {
      gathered += line;
      if (destination.gathers !== true || gathered.length > most) flush();
      else timer ??= setTimeout(flush, longest).unref();
    },
    // pino calls it after a fatal line, so that it is written before the process ends.
    flushSync,
  };
}

import { pino, type DestinationStream, type Logger } from 'pino';
import { shownFields, shownText } from './log/fields.ts';
import { LogOutput } from './log/output.ts';

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

/**
 * How credentials begin: with a known word, or a short one before a long run of mixed characters. What follows is read by
 * {@link secretRests}: the engine keeps a place on its stack for each character of a run, and pictures in base64 have millions.
 */
const secretShapes =
  /\b(?:(Bearer\s+)[A-Za-z0-9._~+/=-]{8}|(sk-|gsk_|pplx-|nvapi-|hf_|AIza|AKIA|ya29\.)[A-Za-z0-9._~+/-]{8}|([a-z]{1,8}[-_])(?=[A-Za-z0-9]{0,999}\d)(?=[A-Za-z0-9]{0,999}[A-Z])[A-Za-z0-9]{20})|([?&]key=)[^&\s"\\]/g;

/** How each of the four goes on. */
const secretRests = [
  /[A-Za-z0-9._~+/=-]{1,1000}/y,
  /[A-Za-z0-9._~+/-]{1,1000}/y,
  /[A-Za-z0-9]{1,1000}/y,
  /[^&\s"\\]{1,1000}/y,
] as const;

/** Finds in a tenth of the time whether there is anything for {@link secretShapes} to find: nearly always there is not. */
const secretHints =
  /Bearer\s|sk-|gsk_|pplx-|nvapi-|hf_|AIza|AKIA|ya29\.|[?&]key=|[-_](?=[a-z0-9]{0,999}[A-Z])[A-Za-z0-9]{20}/;

/** Secrets of this process that need not look like any, as they stand in JSON. */
const known = new Set<string>();

/** From now on this text is masked wherever it turns up in the log. */
export function hideSecret(value: string): void {
  if (value.length >= 8) known.add(JSON.stringify(value).slice(1, -1));
}

/** Text with everything replaced that is known to be a secret or looks like one. */
export function maskSecrets(text: string): string {
  let masked = secretHints.test(text) ? withoutSecrets(text) : text;
  for (const secret of known) if (masked.includes(secret)) masked = masked.replaceAll(secret, '…');
  return masked;
}

function withoutSecrets(text: string): string {
  let masked = '';
  let at = 0;
  secretShapes.lastIndex = 0;
  for (let found = secretShapes.exec(text); found !== null; found = secretShapes.exec(text)) {
    const words = found.slice(1);
    const kind = words.findIndex((word) => word !== undefined);
    masked += `${text.slice(at, found.index)}${words[kind] ?? ''}…`;
    at = endOfRun(text, secretShapes.lastIndex, secretRests[kind] ?? secretRests[0]);
    secretShapes.lastIndex = at;
  }
  return masked + text.slice(at);
}

function endOfRun(text: string, start: number, run: RegExp): number {
  let end = start;
  run.lastIndex = end;
  while (run.test(text)) end = run.lastIndex;
  return end;
}

/** Where lines go. `flushSync` writes what waits before it returns. */
type Destination = DestinationStream & { flushSync?(): void };

/**
 * The process's log: JSON lines on standard output, written in the background (see {@link LogOutput}). Fields that hold secrets are
 * replaced, and so is whatever {@link maskSecrets} finds anywhere in a line; long values are cut.
 */
export function createLog(level: string, destination?: Destination): Log {
  const output = destination === undefined ? standardOutput() : masking(destination);
  const logger = pino(
    {
      level,
      base: null,
      errorKey: 'error',
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label: string) => ({ level: label }), log: shownFields },
      hooks: {
        logMethod(args, method) {
          const [first] = args as unknown[];
          if (args.length === 1 && first instanceof Error)
            method.call(this, { error: first }, shownText(first.message));
          else method.apply(this, shownArguments(args) as typeof args);
        },
      },
    },
    output,
  );
  return withPlain(logger, output);
}

function shownArguments(args: readonly unknown[]): readonly unknown[] {
  return args.map((arg) => (typeof arg === 'string' ? shownText(arg) : arg));
}

function withPlain(logger: Logger, output: DestinationStream): Log {
  // Bound to the logger when they are first needed: pino keeps them as text.
  let bindings: string | undefined;
  const child = logger.child.bind(logger);
  return Object.assign(logger, {
    child: (more: Record<string, unknown>) => withPlain(child(shownFields(more)), output),
    plain(level: 'debug' | 'info', fields: object, sentence: string) {
      if (!logger.isLevelEnabled(level)) return;
      bindings ??= members(logger.bindings());
      const own = members(shownFields(fields as Record<string, unknown>));
      output.write(
        `{"level":"${level}","time":"${timeNow()}"${bindings}${own},"msg":${quoted(shownText(sentence))}}\n`,
      );
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

let standard: LogOutput | undefined;

/** One for the process. A person at a terminal sees each line at once. */
function standardOutput(): LogOutput {
  if (standard === undefined) {
    const output = new LogOutput({
      descriptor: 1,
      gathers: process.stdout.isTTY !== true,
      mask: maskSecrets,
    });
    process.once('exit', () => output.flushSync());
    standard = output;
  }
  return standard;
}

/** Masks whole lines: a secret may stand in a field, in a list, or in the text of an error's cause. */
function masking(destination: Destination): Destination {
  return {
    write: (line) => destination.write(maskSecrets(line)),
    // pino calls it after a fatal line, so that it is written before the process ends.
    flushSync: () => destination.flushSync?.(),
  };
}

/** The log, and what is masked in it. */
import { pino, type DestinationStream, type Logger } from 'pino';
import { shownFields, shownText } from './log/fields.ts';
import { maskKnownSecrets } from './log/known-secrets.ts';
import { isPlainFields, lineOf, timeMember } from './log/line.ts';
import { LogOutput } from './log/output.ts';

export { forgetSecret, hideEndingSecret, hideSecret } from './log/known-secrets.ts';
export { logLevels } from './log/levels.ts';

/** Writes structured lines: first what happened as data, then a sentence. */
export type Log = Pick<Logger, 'debug' | 'info' | 'warn' | 'error' | 'fatal'> & {
  child(bindings: Record<string, unknown>): Log;
};

/**
 * How credentials begin: with a known word, or a short one before a long run of mixed characters. What follows is read by
 * {@link secretRests}: the engine keeps a place on its stack for each character of a run, and pictures in base64 have millions.
 */
const secretShapes =
  /\b(?:(Bearer\s+)[A-Za-z0-9._~+/=-]{8}|(sk-|sla_|gsk_|pplx-|nvapi-|hf_|AIza|AKIA|ya29\.)[A-Za-z0-9._~+/-]{8}|([a-z]{1,8}[-_])(?=[A-Za-z0-9]{0,999}\d)(?=[A-Za-z0-9]{0,999}[A-Z])[A-Za-z0-9]{20})|([?&]key=)[^&\s"\\]/g;

/** How each of the four goes on. */
const secretRests = [
  /[A-Za-z0-9._~+/=-]{1,1000}/y,
  /[A-Za-z0-9._~+/-]{1,1000}/y,
  /[A-Za-z0-9]{1,1000}/y,
  /[^&\s"\\]{1,1000}/y,
] as const;

/** Finds in a tenth of the time whether there is anything for {@link secretShapes} to find: nearly always there is not. */
const secretHints =
  /Bearer\s|sk-|sla_|gsk_|pplx-|nvapi-|hf_|AIza|AKIA|ya29\.|[?&]key=|[-_](?=[a-z0-9]{0,999}[A-Z])[A-Za-z0-9]{20}/;

/**
 * Returns the text with everything masked that is known to be a secret, such as a key of the config, or looks like one. For texts that leave
 * the gateway by another way than its log, which masks by itself.
 *
 * @example
 * const shown = maskSecrets(answer.text());
 */
export function maskSecrets(text: string): string {
  return maskKnownSecrets(secretHints.test(text) ? withoutSecrets(text) : text);
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

/** Destination of log lines. `flushSync` writes all buffered lines before it returns. */
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
      timestamp: timeMember,
      formatters: { level: (label: string) => ({ level: label }), log: shownFields },
      hooks: {
        logMethod(args, method, severity) {
          const [first, text] = args as unknown[];
          if (args.length === 2 && typeof text === 'string' && isPlainFields(first))
            output.write(lineOf(this, severity, first, text));
          else if (args.length === 1 && first instanceof Error)
            method.call(this, { error: first }, shownText(first.message));
          else method.apply(this, shownArguments(args) as typeof args);
        },
      },
    },
    output,
  );
  return withShownBindings(logger);
}

function shownArguments(args: readonly unknown[]): readonly unknown[] {
  return args.map((arg) => (typeof arg === 'string' ? shownText(arg) : arg));
}

/** Applies the formatting of a line's fields to the fields that child loggers add to all their lines. */
function withShownBindings(logger: Logger): Log {
  const child = logger.child.bind(logger);
  return Object.assign(logger, {
    child: (bindings: Record<string, unknown>) => withShownBindings(child(shownFields(bindings))),
  });
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

import { pino, type DestinationStream, type Logger } from 'pino';

/** Writes structured lines: first what happened as data, then a sentence. */
export type Log = Pick<Logger, 'debug' | 'info' | 'warn' | 'error' | 'fatal'> & {
  child(bindings: Record<string, unknown>): Log;
};

/** Levels a log may have, loudest last. */
export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

const secretFields = [
  'authorization',
  'cookie',
  'key',
  'keys',
  'apiKey',
  'api_key',
  'password',
  'secret',
  'token',
];

/** What the keys of the well-known providers, and our own, look like. */
const secretShapes =
  /\b(?:(Bearer\s+)[A-Za-z0-9._~+/=-]{8,}|(sk-|gsk_|xai-|pplx-|nvapi-|hf_|AIza|AKIA|ya29\.)[A-Za-z0-9._~+/-]{8,})|([?&]key=)[^&\s"\\]+/g;

/** Secrets of this process that need not look like any, as they stand in JSON. */
const known = new Set<string>();

/** From now on this text is masked wherever it turns up in the log. */
export function hideSecret(value: string): void {
  if (value.length >= 8) known.add(JSON.stringify(value).slice(1, -1));
}

/** Text with everything replaced that is known to be a secret or looks like one. */
export function maskSecrets(text: string): string {
  let masked = text.replaceAll(
    secretShapes,
    (_found, bearer?: string, prefix?: string, parameter?: string) =>
      `${bearer ?? prefix ?? parameter ?? ''}…`,
  );
  for (const secret of known) if (masked.includes(secret)) masked = masked.replaceAll(secret, '…');
  return masked;
}

/**
 * The process's log: JSON lines on standard output, written in the background. Fields that hold secrets are replaced, and so is whatever
 * {@link maskSecrets} finds anywhere in a line.
 */
export function createLog(
  level: string,
  destination: DestinationStream = pino.destination({ dest: 1, sync: false }),
): Log {
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    redact: { paths: secretFields.flatMap((field) => [field, `*.${field}`, `*.*.${field}`]), censor: '…' },
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { error: serializeError },
  };
  return pino(options, masking(destination));
}

function serializeError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { code } = error as { code?: unknown };
  const cause = error.cause instanceof Error ? `${error.cause.name}: ${error.cause.message}` : undefined;
  return { name: error.name, code, message: error.message, cause, stack: error.stack };
}

/** Masks whole lines: a secret may stand in a field, in a list, or in the text of an error's cause. */
function masking(
  destination: DestinationStream & { flushSync?(): void },
): DestinationStream & { flushSync(): void } {
  return {
    write: (line) => destination.write(maskSecrets(line)),
    // pino calls it after a fatal line, so that it is written before the process ends.
    flushSync: () => destination.flushSync?.(),
  };
}

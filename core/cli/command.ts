import { parseArgs, type ParseArgsOptionsConfig } from 'node:util';

/** One command of the command line: one file in this folder. */
export interface Command {
  /** One line for the overview. */
  readonly summary: string;
  /** The whole help text. */
  readonly help: string;
  /** Returns the help for what these arguments name, where there is a narrower one. */
  helpFor?(args: readonly string[]): Promise<string | undefined>;
  /** Does the work and returns the exit code. What it throws is shown as a sentence. */
  run(args: readonly string[]): Promise<number>;
}

/** The command was called with something it does not understand. */
export class UsageError extends Error {}

/** The options and words of a command line. Throws UsageError for unknown or incomplete options. */
export function readArguments<const Options extends ParseArgsOptionsConfig>(
  args: readonly string[],
  options: Options,
) {
  try {
    return parseArgs({
      args: [...args],
      options: { config: { type: 'string' }, ...options },
      allowPositionals: true,
      strict: true,
    });
  } catch (error) {
    throw new UsageError(
      error instanceof Error ? (error.message.split('. ')[0] ?? error.message) : String(error),
    );
  }
}

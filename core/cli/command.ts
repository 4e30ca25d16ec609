/** Type of a command, and the parser of its arguments. */
import { parseArgs, type ParseArgsOptionsConfig } from 'node:util';

/** One command of the command line. */
export interface Command {
  /** One line for the overview. */
  readonly summary: string;
  /** The whole help text. */
  readonly help: string;
  /** Returns the help for a subcommand that the arguments name; undefined where only the whole help exists. */
  helpFor?(args: readonly string[]): Promise<string | undefined>;
  /** Runs the command and returns the exit code. The command line prints the message of an error that it throws. */
  run(args: readonly string[]): Promise<number>;
}

/** Error of a wrong command line. */
export class UsageError extends Error {}

/** Parses the options and positional arguments of a command line. Throws UsageError for unknown or incomplete options. */
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

import { parseArgs } from 'node:util';

/** Options of `npm run mutate`. */
export interface Options {
  /** Folders and files of the product, as paths from the root of the repository. */
  readonly folders: readonly string[];
  /** Number of mutants tried in each of them. */
  readonly sample: number;
  readonly seed: number;
  /** Number of test processes at the same time. */
  readonly processes: number;
  /** Test files and folders that run, where not those that CONTRIBUTING.md names. */
  readonly tests: readonly string[];
  /** JSON file to which the results are written. */
  readonly out: string | undefined;
  /** JSON file of an earlier run: only the mutants that survived it are tried again. */
  readonly again: string | undefined;
}

/** Explains the command line. */
export const usage = `npm run mutate -- FOLDER… [options]
  --sample N      mutants tried in each folder (default 100)
  --seed S        chooses the sample (default 1)
  --processes N   test processes at the same time (default 2)
  --tests PATH    test file or folder to run, may be repeated (default: those that CONTRIBUTING.md names)
  --out FILE      writes the results as JSON
  --again FILE    tries only those again that survived in FILE`;

/** Reads the command line. Throws an error with the usage when it is wrong. */
export function readOptions(args: readonly string[]): Options {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        sample: { type: 'string', default: '100' },
        seed: { type: 'string', default: '1' },
        processes: { type: 'string', default: '2' },
        tests: { type: 'string', multiple: true, default: [] },
        out: { type: 'string' },
        again: { type: 'string' },
      },
    });
    if (positionals.length === 0) throw new Error('No folder is given.');
    return {
      folders: positionals.map((path) => path.replace(/\/$/, '')),
      sample: wholeNumber('sample', values.sample),
      seed: wholeNumber('seed', values.seed),
      processes: wholeNumber('processes', values.processes),
      tests: values.tests,
      out: values.out,
      again: values.again,
    };
  } catch (error) {
    throw new Error(`${(error as Error).message}\n\n${usage}`, { cause: error });
  }
}

function wholeNumber(name: string, text: string): number {
  const number = Number(text);
  if (!Number.isInteger(number) || number < 1)
    throw new Error(`--${name} must be a whole number from 1 on, not "${text}".`);
  return number;
}

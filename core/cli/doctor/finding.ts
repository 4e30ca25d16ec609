/** Types of the checks of `sluice doctor` and of their findings, and functions to make and format findings. */
import type { LoadedConfig } from '../../config/config.ts';

/** One line of the output: the check, its result, and what to do. */
export interface Finding {
  readonly check: string;
  readonly status: 'ok' | 'warning' | 'error';
  readonly message: string;
  /** Sentence about what to do. */
  readonly fix?: string;
}

/** Input of the checks. */
export interface Examined {
  readonly config: LoadedConfig;
  readonly databaseUrl: string;
  /** Returns milliseconds since 1970, by the clock of this machine. */
  now(): number;
  /** Free bytes of the data folder below which there is a warning. */
  readonly minFree: number;
  /** A certificate that expires within so many days is a warning. */
  readonly certificateDays: number;
  /** Requests the list of models from each provider. */
  readonly asksProviders: boolean;
}

/** One named check. An error that it throws becomes a finding. */
export interface Check {
  readonly name: string;
  look(examined: Examined): Promise<readonly Finding[]> | readonly Finding[];
}

/** Returns functions that make the findings of a check. */
export function findingsOf(check: string) {
  return {
    ok: (message: string): Finding => ({ check, status: 'ok', message }),
    warning: (message: string, fix: string): Finding => ({ check, status: 'warning', message, fix }),
    error: (message: string, fix: string): Finding => ({ check, status: 'error', message, fix }),
  };
}

/** Formats a number of bytes with a unit, such as `1.5 GiB`. */
export function shownBytes(bytes: number): string {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
  const power = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log2(Math.max(1, bytes)) / 10)));
  return `${(bytes / 1024 ** power).toFixed(power === 0 ? 0 : 1)} ${units[power]}`;
}

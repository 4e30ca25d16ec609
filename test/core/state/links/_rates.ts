import { openRates } from '../../../../core/money/rates/open.ts';
import type { Rates } from '../../../../core/money/rates/index.ts';

type Options = Parameters<typeof openRates>;

/** Times that tests need not wait long for, in milliseconds. */
export const times = { minute: 1_200, lease: 600 };

/** Rates that a file of tests opens on a shared store, all of which it closes at its end. */
export class OpenedRates {
  readonly #opened: Rates[] = [];

  open(store: Options[0], own: Options[2] = times): Rates {
    const rates = openRates(store, () => {}, own);
    this.#opened.push(rates);
    return rates;
  }

  async close(): Promise<void> {
    await Promise.all(this.#opened.map((rates) => rates.close()));
  }
}

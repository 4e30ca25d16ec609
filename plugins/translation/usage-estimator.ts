/** Counts what an answer uses where its provider does not. */
import { estimateTokens, wordBytes, type GatewayEvent, type Usage } from 'sluice';

const nothing = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, reasoning: 0 };

/** Estimates the usage of a response when the provider does not report it. */
export class UsageEstimator {
  readonly #estimateInput: () => number;
  #reported: Usage | undefined;
  #words = 0;

  /** `estimateInput` is called only when the provider does not report the input. */
  constructor(estimateInput: () => number) {
    this.#estimateInput = estimateInput;
  }

  event(event: GatewayEvent): void {
    if (event.type === 'usage') this.#reported = event.usage;
    else this.#words += wordBytes(event);
  }

  /** True when anything of the answer was seen. */
  get spoke(): boolean {
    return this.#words > 0;
  }

  /**
   * Returns the usage as it must be told at the end; undefined where the provider has told it. One that tells zero has not counted: no answer is
   * given to nothing, and none that has words takes no tokens.
   */
  missingUsage(): Usage | undefined {
    const { input, output, ...parts } = this.#reported ?? nothing;
    if (input > 0 && (output > 0 || !this.spoke)) return undefined;
    const { cacheRead, cacheWrite, reasoning } = parts;
    return {
      input: input > 0 ? input : this.#estimateInput(),
      output: output > 0 ? output : estimateTokens(this.#words),
      cacheRead,
      cacheWrite,
      reasoning,
      estimated: true,
    };
  }
}

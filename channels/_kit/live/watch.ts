import type { Usage } from 'sluice';
import type { SocketMessage, SessionWatch } from 'sluice/channel-kit';

/** Characters of arguments that are taken for one token. */
const charactersOfToken = 4;

/**
 * Watches a session in which a response that calls functions is charged for with the one that follows their results. A client that leaves
 * in between pays by an estimate.
 */
export class LiveWatch implements SessionWatch {
  readonly #answers: SessionWatch;
  /** Tokens of the last response, which the next one reads at least. */
  #context = 0;
  #unreported: Usage | undefined;

  constructor(answers: SessionWatch) {
    this.#answers = answers;
  }

  get unfinished(): Usage | undefined {
    return this.#answers.unfinished;
  }

  get unreported(): Usage | undefined {
    return this.#unreported;
  }

  read(message: SocketMessage): Usage | undefined {
    const used = this.#answers.read(message);
    if (used === undefined) return undefined;
    if (used.input + used.output > 0) {
      this.#context = used.input + used.output;
      this.#unreported = undefined;
    } else if (message.data.includes('"type":"function_call"')) {
      const output = Math.ceil(message.data.length / charactersOfToken);
      this.#unreported = {
        input: this.#context,
        output,
        cacheRead: 0,
        cacheWrite: 0,
        reasoning: 0,
        estimated: true,
      };
    }
    return used;
  }
}

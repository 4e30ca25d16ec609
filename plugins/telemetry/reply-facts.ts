import type { GatewayEvent, Observing } from 'sluice';
import { passedFacts, type Facts } from './passed-facts.ts';
import { maxChoices, ReplyText } from './reply-text.ts';
import { word } from './settings.ts';

/** Number of the last chunks of a response that are kept: what ends a response stands in up to three frames, each in a chunk of its own. */
const kept = 4;

/** Observes one response. Of what passes through it keeps the first chunk and the last ones, and reads them once the response has ended. */
export class ReplyFacts implements Observing {
  readonly text: ReplyText | undefined;
  readonly #format: string;
  #first: Buffer | undefined;
  #last: Buffer[] = [];
  #next = 0;
  #id: string | undefined;
  #model: string | undefined;
  #reasons: string[] | undefined;

  /** `maxBytes`: how much of the texts is kept; undefined: nothing. */
  constructor(format: string, maxBytes: number | undefined) {
    this.#format = format;
    this.text = maxBytes === undefined ? undefined : new ReplyText(maxBytes);
  }

  event(event: GatewayEvent): void {
    switch (event.type) {
      case 'frames':
      case 'bytes':
        this.#first ??= event.bytes;
        this.#last[this.#next % kept] = event.bytes;
        this.#next += 1;
        return;
      case 'head':
        this.#id = word(event.id);
        this.#model = word(event.model);
        return;
      case 'finish':
        if (event.choice < maxChoices) (this.#reasons ??= [])[event.choice] = word(event.raw ?? event.reason);
        return;
      default:
        this.text?.event(event);
    }
  }

  /** Returns the values that the response stated, once it has ended. */
  facts(choices: number): Facts {
    const { id, model, finishReasons } = this.#passed(choices);
    const [ownId, ownModel] = [this.#id ?? id, this.#model ?? model];
    return {
      ...(ownId === undefined ? {} : { id: ownId }),
      ...(ownModel === undefined ? {} : { model: ownModel }),
      finishReasons:
        this.#reasons === undefined ? finishReasons : Array.from(this.#reasons, (one) => one ?? 'error'),
    };
  }

  #passed(choices: number): Facts {
    if (this.#first === undefined) return { finishReasons: [] };
    const start = Math.max(0, this.#next - kept);
    const last = Array.from({ length: this.#next - start }, (_, index) => this.#last[(start + index) % kept]);
    return passedFacts(
      this.#format,
      this.#first,
      last.filter((chunk) => chunk !== undefined),
      choices,
    );
  }
}

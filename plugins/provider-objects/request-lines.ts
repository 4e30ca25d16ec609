import type { JsonObject } from 'sluice';
import { isObject, parseObject } from 'sluice/internal';
import type { ObjectFormat } from './collections.ts';
import { Lines } from './lines.ts';
import { referencesIn } from './references.ts';

/** What the lines of a file ask for, where each is a request of a batch. */
export interface RequestedLines {
  /** The public names of their models, each once; none where the lines name no model. */
  readonly models: readonly string[];
  /** What they refer to: kinds and ids. */
  readonly references: readonly (readonly [kind: string, id: string])[];
  readonly count: number;
}

const most = { models: 50, references: 1000 };

/**
 * Reads a file of requests while it passes by, line by line. As soon as something in it is no such request, or there is more of it than can
 * be kept, nothing is known of it any more.
 */
export class RequestLines {
  readonly #format: ObjectFormat;
  readonly #lines = new Lines((line) => this.#line(line));
  readonly #models = new Set<string>();
  readonly #references = new Map<string, readonly [string, string]>();
  #count = 0;
  #isKnown = true;
  #isText = false;

  constructor(format: ObjectFormat) {
    this.#format = format;
  }

  /** The model of the first line; undefined while none has come. */
  get model(): string | undefined {
    return this.#models.values().next().value;
  }

  /** True when the first line is read, or there is none that is a request. */
  get hasBegun(): boolean {
    return this.#count > 0 || !this.#isKnown;
  }

  push(bytes: Buffer): void {
    if (!this.#isKnown) return;
    try {
      // Films and pictures have no lines: nothing of them is held.
      if (!this.#isText && bytes.length > 0) {
        this.#isText = /^\s*\{/.test(bytes.subarray(0, 100).toString('latin1'));
        if (!this.#isText) this.#giveUp();
      }
      if (this.#isKnown) this.#lines.push(bytes);
    } catch {
      this.#giveUp();
    }
  }

  /** The file has ended: its last line is complete. */
  flush(): void {
    if (this.#isKnown) this.#lines.end();
  }

  /** What the file asks for, when all of it has come; undefined where that is not known. */
  end(): RequestedLines | undefined {
    this.flush();
    if (!this.#isKnown || this.#count === 0) return undefined;
    return { models: [...this.#models], references: [...this.#references.values()], count: this.#count };
  }

  #line(text: string): void {
    if (!this.#isKnown) return;
    const body = bodyIn(parseObject(text), this.#format);
    if (body === undefined) {
      this.#giveUp();
      return;
    }
    try {
      for (const { kind, id } of referencesIn(body, this.#format))
        this.#references.set(`${kind} ${id}`, [kind, id]);
    } catch {
      this.#giveUp();
      return;
    }
    if (typeof body['model'] === 'string') this.#models.add(body['model'].replace(/^models\//, ''));
    this.#count += 1;
    if (this.#models.size > most.models || this.#references.size > most.references) this.#giveUp();
  }

  #giveUp(): void {
    this.#isKnown = false;
  }
}

/** The request in a line. Where a format names no model in it, the batch does. */
function bodyIn(line: JsonObject | undefined, format: ObjectFormat): JsonObject | undefined {
  if (line === undefined) return undefined;
  if (format === 'generate-content') return isObject(line['request']) ? line['request'] : undefined;
  const { body } = line;
  // Turns that a provider remembers by themselves are nobody's here: no line may go on from them.
  if (isObject(body) && (body['previous_response_id'] ?? body['conversation'] ?? null) !== null)
    return undefined;
  return isObject(body) && typeof body['model'] === 'string' && typeof line['custom_id'] === 'string'
    ? body
    : undefined;
}

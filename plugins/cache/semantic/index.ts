/** Finds responses to questions that mean the same. */
import { gathered, type Call, type JsonValue, type PluginTools } from 'sluice';
import type { CacheKey } from '../key.ts';
import type { CacheOptions, SemanticOptions } from '../options.ts';
import { openQuestions } from './open.ts';
import { RareWarning } from '../rare-warning.ts';
import { questionOf } from './question.ts';
import type { Answer, EmbeddedQuestion, Questions } from './questions.ts';

export type { EmbeddedQuestion } from './questions.ts';

/** Maximum length of a vector: pgvector keeps no longer ones, and memory does as the database does. */
const mostDimensions = 16_000;

/** Finds responses to questions that mean the same. What fails here is a miss. */
export class SemanticIndex {
  readonly #options: SemanticOptions;
  readonly #tools: Pick<PluginTools, 'subcall' | 'log'>;
  readonly #questions: Questions;
  readonly #ignored: ReadonlySet<string>;
  readonly #embeddingFailed: RareWarning;
  readonly #indexFailed: RareWarning;

  private constructor(
    options: SemanticOptions,
    ignored: CacheOptions['ignore'],
    tools: Pick<PluginTools, 'subcall' | 'log'>,
    questions: Questions,
  ) {
    this.#options = options;
    this.#ignored = new Set(ignored);
    this.#tools = tools;
    this.#questions = questions;
    this.#embeddingFailed = new RareWarning(
      tools.log,
      'a question could not be embedded: only exact hits for it',
    );
    this.#indexFailed = new RareWarning(tools.log, 'the index of questions failed: only exact hits');
  }

  /** Throws an Error that describes the fix when a package, or the configured database, is missing. */
  static async open(
    semantic: SemanticOptions,
    options: CacheOptions,
    tools: Pick<PluginTools, 'subcall' | 'log' | 'stores'>,
  ): Promise<SemanticIndex> {
    return new SemanticIndex(semantic, options.ignore, tools, await openQuestions(semantic, options, tools));
  }

  /** Embeds the question of a call; undefined where it has none, or the model that embeds fails. Never rejects. */
  async embed(call: Call, key: CacheKey): Promise<EmbeddedQuestion | undefined> {
    // A vector that can neither be looked for nor kept is worth no money.
    if (this.#questions.isUnusable) return undefined;
    try {
      const question = questionOf(call, key, this.#options, this.#ignored);
      if (question === undefined) return undefined;
      const vector = await this.#vectorOf(call, question.text);
      return { partition: question.partition, vector };
    } catch (error) {
      this.#embeddingFailed.write({ error, model: this.#options.model });
      return undefined;
    }
  }

  /** Returns the digest of the response to the most similar question, if that is similar enough. Never rejects. */
  async find(question: EmbeddedQuestion): Promise<string | undefined> {
    try {
      const nearest = await this.#questions.nearest(question);
      return nearest !== undefined && nearest.similarity >= this.#options.threshold
        ? nearest.digest
        : undefined;
    } catch (error) {
      this.#indexFailed.write({ error });
      return undefined;
    }
  }

  /** Remembers a question that was answered. Never throws. */
  add(question: EmbeddedQuestion, answer: Answer): void {
    this.#changed(() => this.#questions.add(question, answer));
  }

  /** Forgets the question of a response that is gone. Never throws. */
  forget(digest: string): void {
    this.#changed(() => this.#questions.forget(digest));
  }

  /** Runs a change of the index, and handles its errors. Only the index in memory throws. */
  #changed(change: () => void): void {
    try {
      change();
    } catch (error) {
      this.#indexFailed.write({ error });
    }
  }

  /** Forgets at least the questions of a scope, or all. Rejects where a database fails. */
  async clear(scope: string | undefined): Promise<void> {
    await this.#questions.clear(scope);
  }

  close(): void {
    this.#questions.close();
  }

  async #vectorOf(call: Call, text: string): Promise<Float32Array> {
    const { model, chargeTo, timeout } = this.#options;
    const direct = this.#tools.subcall(call, {
      operation: 'embed',
      format: 'embeddings',
      body: { model, input: text },
      chargeTo,
    });
    const timer = setTimeout(() => direct.end(), timeout);
    try {
      const events = await gathered(direct.call, await direct.send());
      const result = events.find(({ type }) => type === 'result');
      return vectorIn(result?.type === 'result' ? (result.value as JsonValue) : null);
    } finally {
      clearTimeout(timer);
      direct.end();
    }
  }
}

/** Returns the first vector of a result. Throws when there is no valid one. */
function vectorIn(value: JsonValue): Float32Array {
  const vectors: unknown =
    typeof value === 'object' && value !== null && 'vectors' in value ? value.vectors : undefined;
  const first: unknown = Array.isArray(vectors) ? vectors[0] : undefined;
  const vector =
    typeof first === 'string' ? decoded(first) : Array.isArray(first) ? Float32Array.from(first) : undefined;
  if (
    vector === undefined ||
    vector.length === 0 ||
    vector.length > mostDimensions ||
    !vector.every(Number.isFinite)
  )
    throw new Error('The embedding model returned no usable vector.');
  return vector;
}

/** Decodes little-endian 32-bit floats in base64. */
function decoded(base64: string): Float32Array {
  const bytes = Buffer.from(base64, 'base64');
  const vector = new Float32Array(Math.floor(bytes.length / 4));
  for (let at = 0; at < vector.length; at += 1) vector[at] = bytes.readFloatLE(at * 4);
  return vector;
}

/** Finds responses to questions that mean the same. */
import { gathered, type Call, type JsonValue, type PluginTools } from 'sluice';
import type { CacheKey } from '../key.ts';
import type { CacheOptions, SemanticOptions } from '../options.ts';
import { openQuestions } from './open.ts';
import { questionOf } from './question.ts';
import type { Answer, EmbeddedQuestion, Questions } from './questions.ts';

export type { EmbeddedQuestion } from './questions.ts';

/** Milliseconds between two lines of the log about embeddings that fail. */
const quiet = 60_000;

/** Maximum length of a vector. */
const mostDimensions = 16_384;

/** Finds responses to questions that mean the same. What fails here is a miss. */
export class SemanticIndex {
  readonly #options: SemanticOptions;
  readonly #tools: Pick<PluginTools, 'subcall' | 'log'>;
  readonly #questions: Questions;
  #toldAt = -Infinity;

  private constructor(
    options: SemanticOptions,
    tools: Pick<PluginTools, 'subcall' | 'log'>,
    questions: Questions,
  ) {
    this.#options = options;
    this.#tools = tools;
    this.#questions = questions;
  }

  /** Throws an Error that says what to do where a package, or the database that is wanted, is missing. */
  static async open(
    semantic: SemanticOptions,
    options: CacheOptions,
    tools: Pick<PluginTools, 'subcall' | 'log' | 'stores'>,
  ): Promise<SemanticIndex> {
    return new SemanticIndex(semantic, tools, await openQuestions(semantic, options, tools));
  }

  /** Embeds the question of a call; undefined where it has none, or the model that embeds fails. Never rejects. */
  async embed(call: Call, key: CacheKey): Promise<EmbeddedQuestion | undefined> {
    // A vector that can neither be looked for nor kept is worth no money.
    if (this.#questions.isResting) return undefined;
    const question = questionOf(call, key, this.#options);
    if (question === undefined) return undefined;
    try {
      const vector = await this.#vectorOf(call, question.text);
      return { partition: question.partition, vector };
    } catch (error) {
      this.#failed(error);
      return undefined;
    }
  }

  /** Returns the digest of the response to the most similar question, if that is similar enough. Never rejects. */
  async find(question: EmbeddedQuestion): Promise<string | undefined> {
    const nearest = await this.#questions.nearest(question);
    return nearest !== undefined && nearest.similarity >= this.#options.threshold
      ? nearest.digest
      : undefined;
  }

  /** Remembers a question that was answered. */
  add(question: EmbeddedQuestion, answer: Answer): void {
    this.#questions.add(question, answer);
  }

  forget(digest: string): void {
    this.#questions.forget(digest);
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

  #failed(error: unknown): void {
    const now = Date.now();
    if (now - this.#toldAt < quiet) return;
    this.#toldAt = now;
    this.#tools.log.warn(
      { error, model: this.#options.model },
      'a question could not be embedded: it has exact hits alone',
    );
  }
}

/** The first vector of a result. Throws where there is none that can be used. */
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
    throw new Error('The model that embeds gave no vector that can be used.');
  return vector;
}

/** Little-endian 32-bit floats in base64. */
function decoded(base64: string): Float32Array {
  const bytes = Buffer.from(base64, 'base64');
  const vector = new Float32Array(Math.floor(bytes.length / 4));
  for (let at = 0; at < vector.length; at += 1) vector[at] = bytes.readFloatLE(at * 4);
  return vector;
}

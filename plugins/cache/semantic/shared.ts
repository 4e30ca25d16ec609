import type { PluginTools, VectorStore } from 'sluice';
import { Cooldown } from '../cooldown.ts';
import { inTime } from '../in-time.ts';
import type { Answer, EmbeddedQuestion, Neighbour, Questions } from './questions.ts';

/** Maximum number of vectors that are being written or deleted. Others are left as they are. */
const mostWrites = 64;

/** Vectors of questions in the gateway's database, where all workers find them. A database that fails has none. */
export class SharedQuestions implements Questions {
  readonly #vectors: VectorStore;
  readonly #lifetime: number;
  readonly #cooldown: Cooldown;
  #writes = 0;

  /** `lifetime`: milliseconds for which a response is kept. */
  constructor(vectors: VectorStore, lifetime: number, log: PluginTools['log']) {
    this.#vectors = vectors;
    this.#lifetime = lifetime;
    this.#cooldown = new Cooldown(log, 'the database of vectors failed: only exact hits for now');
  }

  get isUnusable(): boolean {
    return this.#cooldown.isActive;
  }

  async nearest({ partition, vector }: EmbeddedQuestion): Promise<Neighbour | undefined> {
    if (this.isUnusable) return undefined;
    try {
      const nearest = await inTime(this.#vectors.nearest(partition, vector));
      return nearest === undefined ? undefined : { digest: nearest.id, similarity: nearest.similarity };
    } catch (error) {
      this.#cooldown.start(error);
      return undefined;
    }
  }

  add({ partition, vector }: EmbeddedQuestion, { digest, scope, at, isShared }: Answer): void {
    void this.#write(async () => {
      // A vector that came first would lead other workers to nothing.
      const isFound = await isShared;
      const ttl = at + this.#lifetime - Date.now();
      if (isFound && ttl > 0) await this.#vectors.add({ id: digest, partition, group: scope, vector, ttl });
    });
  }

  forget(digest: string): void {
    void this.#write(() => this.#vectors.delete(digest));
  }

  async clear(scope: string | undefined): Promise<void> {
    await this.#vectors.clear(scope);
  }

  /** Does nothing, because the database belongs to the gateway. */
  close(): void {}

  async #write(work: () => Promise<void>): Promise<void> {
    if (this.isUnusable || this.#writes >= mostWrites) return;
    this.#writes += 1;
    try {
      await work();
    } catch (error) {
      this.#cooldown.start(error);
    } finally {
      this.#writes -= 1;
    }
  }
}

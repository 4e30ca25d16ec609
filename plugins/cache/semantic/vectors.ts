import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { requirePackage } from 'sluice';
import type { Answer, EmbeddedQuestion, Neighbour, Questions } from './questions.ts';

/** Vectors of questions in the memory of one worker, with `sqlite-vec`. All have one length. */
export class VectorIndex implements Questions {
  readonly isUnusable = false;
  readonly #database: DatabaseSync;
  readonly #nearest: StatementSync;
  readonly #add: StatementSync;
  readonly #trimPartition: StatementSync;
  readonly #trimAll: StatementSync;
  readonly #forget: StatementSync;
  readonly #perPartition: number;
  readonly #most: number;

  private constructor(database: DatabaseSync, perPartition: number, most: number) {
    this.#database = database;
    this.#perPartition = perPartition;
    this.#most = most;
    database.exec(`
      CREATE TABLE questions (
        number INTEGER PRIMARY KEY AUTOINCREMENT, part TEXT NOT NULL, digest TEXT NOT NULL, vector BLOB NOT NULL
      ) STRICT;
      CREATE INDEX questions_part ON questions (part, number);
      CREATE INDEX questions_digest ON questions (digest);
    `);
    // A partition is scanned, as it is bounded: an index of vectors would miss some.
    this.#nearest = database.prepare(
      `SELECT digest, vec_distance_cosine(vector, ?) AS distance FROM questions
       WHERE part = ? AND length(vector) = ? ORDER BY distance LIMIT 1`,
    );
    this.#add = database.prepare('INSERT INTO questions (part, digest, vector) VALUES (?, ?, ?)');
    this.#trimPartition = database.prepare(
      `DELETE FROM questions WHERE number IN (
         SELECT number FROM questions WHERE part = ? ORDER BY number DESC LIMIT -1 OFFSET ?
       )`,
    );
    this.#trimAll = database.prepare(
      'DELETE FROM questions WHERE number <= (SELECT max(number) FROM questions) - ?',
    );
    this.#forget = database.prepare('DELETE FROM questions WHERE digest = ?');
  }

  /** Opens an empty index. Throws an Error that names the package to install when `sqlite-vec` is missing. */
  static async open(perPartition: number, most: number): Promise<VectorIndex> {
    requirePackage('sqlite-vec', '0', 'find questions that mean the same', import.meta.url);
    const { getLoadablePath } = await import('sqlite-vec');
    const { DatabaseSync: Database } = await import('node:sqlite');
    const database = new Database(':memory:', { allowExtension: true });
    database.loadExtension(getLoadablePath());
    database.enableLoadExtension(false);
    return new VectorIndex(database, perPartition, most);
  }

  /** Finds the nearest vector of a partition. */
  nearest({ partition, vector }: EmbeddedQuestion): Neighbour | undefined {
    const bytes = bytesOf(vector);
    const row = this.#nearest.get(bytes, partition, bytes.length);
    const distance = row?.['distance'];
    if (typeof distance !== 'number' || !Number.isFinite(distance)) return undefined;
    return { digest: String(row?.['digest']), similarity: 1 - distance };
  }

  /** Remembers a vector. The oldest of its partition, and of all, are forgotten where there are too many. */
  add({ partition, vector }: EmbeddedQuestion, { digest }: Pick<Answer, 'digest'>): void {
    this.#forget.run(digest);
    this.#add.run(partition, digest, bytesOf(vector));
    this.#trimPartition.run(partition, this.#perPartition);
    this.#trimAll.run(this.#most);
  }

  /** Forgets the vector of a response that is gone. */
  forget(digest: string): void {
    this.#forget.run(digest);
  }

  /** Forgets everything, whichever scope was purged. */
  clear(): void {
    this.#database.exec('DELETE FROM questions');
  }

  close(): void {
    this.#database.close();
  }
}

function bytesOf({ buffer, byteOffset, byteLength }: Float32Array): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/** Vectors in PostgreSQL, compared by pgvector. */
import type { NearestVector, StoredVector, VectorLimits, VectorStore } from '../../sdk/author/vectors.ts';
import type { PostgresDatabase } from '../database/postgres.ts';

/** Maximum length of a vector of pgvector. */
const mostDimensions = 16_000;

/** The whole collection is trimmed once for so large a share of its vectors, because that reads an index of all. */
const trimShare = 0.01;

/** Rows that another statement is deleting are left to it: two that wait for each other would both fail. */
const trimmed = (which: string): string => `
  DELETE FROM sluice_vectors WHERE number IN (
    SELECT number FROM sluice_vectors WHERE namespace = $1 AND number IN (
      SELECT number FROM sluice_vectors WHERE ${which} ORDER BY number DESC OFFSET $2
    ) FOR UPDATE SKIP LOCKED
  ) AND namespace = $1`;

const TRIM_ALL = trimmed('namespace = $1');
const TRIM_PARTITION = trimmed('namespace = $1 AND part = $3');

/** Deletes some vectors that have expired. Returns how many. */
export async function deleteExpiredVectors(database: PostgresDatabase, limit: number): Promise<number> {
  const rows = await database.query(
    `DELETE FROM sluice_vectors WHERE (namespace, id) IN (
       SELECT namespace, id FROM sluice_vectors WHERE expires <= $1 ORDER BY expires LIMIT $2 FOR UPDATE SKIP LOCKED
     ) RETURNING 1`,
    [Date.now(), limit],
  );
  return rows.length;
}

/** A collection of vectors. */
export class PostgresVectors implements VectorStore {
  readonly #database: PostgresDatabase;
  readonly #namespace: string;
  readonly #limits: VectorLimits;
  readonly #insert: string;
  readonly #nearest: string;
  #untrimmed = 0;

  /** `schema`: that of the extension, quoted as SQL needs it. */
  constructor(database: PostgresDatabase, namespace: string, limits: VectorLimits, schema: string) {
    this.#database = database;
    this.#namespace = namespace;
    this.#limits = limits;
    this.#insert = `
      INSERT INTO sluice_vectors (namespace, id, part, owner, expires, dimensions, vector)
      VALUES ($1, $2, $3, $4, $5, $6, $7::${schema}.vector)
      ON CONFLICT (namespace, id) DO UPDATE SET number = DEFAULT, part = excluded.part, owner = excluded.owner,
        expires = excluded.expires, dimensions = excluded.dimensions, vector = excluded.vector`;
    this.#nearest = `
      SELECT id, vector OPERATOR(${schema}.<=>) $4::${schema}.vector AS distance FROM sluice_vectors
      WHERE namespace = $1 AND part = $2 AND dimensions = $3 AND expires > $5
      ORDER BY distance, number DESC LIMIT 1`;
  }

  async add({ id, partition, group, vector, ttl }: StoredVector): Promise<void> {
    if (!isStorable(vector)) return;
    const expires = Math.ceil(Date.now() + ttl);
    const named = [this.#namespace, id, partition, group];
    await this.#database.query(this.#insert, [...named, expires, vector.length, textOf(vector)]);
    const { perPartition, most } = this.#limits;
    await this.#database.query(TRIM_PARTITION, [this.#namespace, perPartition, partition]);
    this.#untrimmed += 1;
    if (this.#untrimmed < most * trimShare) return;
    this.#untrimmed = 0;
    await this.#database.query(TRIM_ALL, [this.#namespace, most]);
  }

  async nearest(partition: string, vector: Float32Array): Promise<NearestVector | undefined> {
    if (!isStorable(vector)) return undefined;
    const parameters = [this.#namespace, partition, vector.length, textOf(vector), Date.now()];
    const [row] = await this.#database.query(this.#nearest, parameters);
    const distance = row?.['distance'];
    // A vector of zeros has no direction.
    if (typeof distance !== 'number' || !Number.isFinite(distance)) return undefined;
    return { id: String(row?.['id']), similarity: 1 - distance };
  }

  async delete(id: string): Promise<void> {
    await this.#database.query('DELETE FROM sluice_vectors WHERE namespace = $1 AND id = $2', [
      this.#namespace,
      id,
    ]);
  }

  async clear(group?: string): Promise<void> {
    if (group === undefined)
      await this.#database.query('DELETE FROM sluice_vectors WHERE namespace = $1', [this.#namespace]);
    else
      await this.#database.query('DELETE FROM sluice_vectors WHERE namespace = $1 AND owner = $2', [
        this.#namespace,
        group,
      ]);
  }
}

function isStorable(vector: Float32Array): boolean {
  return vector.length > 0 && vector.length <= mostDimensions && vector.every(Number.isFinite);
}

function textOf(vector: Float32Array): string {
  return `[${vector.join(',')}]`;
}

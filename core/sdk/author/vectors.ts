/**
 * A vector with what it is found by.
 *
 * @example
 * const stored: StoredVector = { id: 'a', partition: 'english', group: keyId, vector, ttl: 60_000 };
 */
export interface StoredVector {
  /** Name of the vector in its collection. Another vector of this name is replaced. */
  readonly id: string;
  /** Vectors are compared within one partition alone. */
  readonly partition: string;
  /** Name under which {@link VectorStore.clear} deletes vectors of several partitions. */
  readonly group: string;
  /** Up to 16,000 numbers. Vectors of other lengths are not compared with it. */
  readonly vector: Float32Array;
  /** Milliseconds for which the vector is kept. */
  readonly ttl: number;
}

/**
 * The vector that is nearest to another one.
 *
 * @example
 * const isSame = nearest !== undefined && nearest.similarity > 0.95;
 */
export interface NearestVector {
  readonly id: string;
  /** Cosine similarity, -1 to 1. */
  readonly similarity: number;
}

/**
 * A collection of vectors in the gateway's database, which all workers and gateways share. A database failure rejects the call that met it.
 *
 * @example
 * await vectors.add({ id: 'a', partition: 'english', group: keyId, vector, ttl: 60_000 });
 * const nearest = await vectors.nearest('english', vector);
 */
export interface VectorStore {
  /** Adds a vector. Deletes the oldest of its partition, and of the collection, where there are too many. */
  add(vector: StoredVector): Promise<void>;
  /** Returns the nearest vector of a partition. Compares with every vector of the partition, so the result is exact. */
  nearest(partition: string, vector: Float32Array): Promise<NearestVector | undefined>;
  delete(id: string): Promise<void>;
  /** Deletes all vectors, or those of one group. */
  clear(group?: string): Promise<void>;
}

/**
 * Maximum numbers of vectors of a collection.
 *
 * @example
 * const limits: VectorLimits = { perPartition: 1_000, most: 10_000 };
 */
export interface VectorLimits {
  /** Maximum number of vectors in one partition. */
  readonly perPartition: number;
  /** Maximum number of vectors in all. It is checked now and then: until then there may be one in a hundred more for each worker. */
  readonly most: number;
}

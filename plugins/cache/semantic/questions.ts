/** The nearest of the vectors of a partition. */
export interface Neighbour {
  /** The digest of the response. */
  readonly digest: string;
  /** Cosine similarity, up to 1. */
  readonly similarity: number;
}

/** A question with its vector, for when its answer is known. */
export interface EmbeddedQuestion {
  readonly partition: string;
  readonly vector: Float32Array;
}

/** The response to a question, by what it is kept with. */
export interface Answer {
  readonly digest: string;
  readonly scope: string;
  /** Time at which its request arrived, in milliseconds since 1970. */
  readonly at: number;
  /** Resolves with true once other workers find the response. Never rejects. */
  readonly isShared: Promise<boolean>;
}

/** Vectors of questions, with the digests of their responses. */
export interface Questions {
  /** True while no question can be found or added. */
  readonly isUnusable: boolean;
  /** Finds the nearest vector of a partition. Never rejects. */
  nearest(question: EmbeddedQuestion): Neighbour | undefined | Promise<Neighbour | undefined>;
  /** Remembers a question. Soon, where they are in a database. */
  add(question: EmbeddedQuestion, answer: Answer): void;
  /** Forgets the vector of a response that is gone. */
  forget(digest: string): void;
  /** Forgets at least the questions of a scope, or all. Rejects where a database fails. */
  clear(scope: string | undefined): void | Promise<void>;
  close(): void;
}

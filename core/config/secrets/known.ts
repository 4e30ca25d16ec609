/** Values of secrets as they are handed from one process of a gateway to the next. */

/** A value that was read. */
export interface KnownSecret {
  readonly reference: string;
  /** Digest of the options of the source: with other options the reference may name another secret. Empty for variables and files. */
  readonly source: string;
  readonly text: string;
  /** Time at which it was read, in milliseconds since 1970. */
  readonly readAt: number;
}

/** Returns the key of a value among those of all configurations. */
export function keyOfKnown({ source, reference }: Pick<KnownSecret, 'source' | 'reference'>): string {
  return `${source} ${reference}`;
}

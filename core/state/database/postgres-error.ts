/** A database that failed, as a sentence for the operator. `code` is the SQLSTATE when the server named one: `23505`, `40P01`. */
export class PostgresError extends Error {
  readonly code: string | undefined;

  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'PostgresError';
    const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
    this.code = typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : undefined;
  }
}

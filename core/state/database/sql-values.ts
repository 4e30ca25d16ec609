/** Parameters of statements, in both databases. */
export type SqlValue = string | number | null;

/** A row as the driver gives it. */
export type Row = Readonly<Record<string, unknown>>;

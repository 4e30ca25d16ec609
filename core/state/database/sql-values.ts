/** What a statement can be given, in either database. */
export type SqlValue = string | number | null;

/** A row as the driver gives it. */
export type Row = Readonly<Record<string, unknown>>;

/** Cells of tables in CSV (RFC 4180), which programs for tables read as text. */

/** Returns a cell with this text. A program that reads tables takes one that begins like a formula for one: an apostrophe keeps it a text. */
export function csvCell(text: string): string {
  const safe = /^[\s=+\-@|%]/.test(text) ? `'${text}` : text;
  return /[",\r\n;\t]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

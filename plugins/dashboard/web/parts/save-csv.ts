/** Tables as files. */

/** Saves rows as a CSV file (RFC 4180). Programs that read tables take a text that begins like a formula for one: an apostrophe keeps it a text. */
export function saveCsv(name: string, rows: readonly (readonly (string | number | undefined)[])[]): void {
  const cell = (value: string | number | undefined): string => {
    if (typeof value !== 'string') return value === undefined ? '' : String(value);
    const safe = /^[\s=+\-@|%]/.test(value) ? `'${value}` : value;
    return /[",\r\n;\t]/.test(safe) || safe !== value ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  const text = rows.map((row) => `${row.map(cell).join(',')}\r\n`).join('');
  const url = URL.createObjectURL(new Blob([text], { type: 'text/csv' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}

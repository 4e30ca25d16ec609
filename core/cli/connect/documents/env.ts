import { parseEnv } from 'node:util';
import { valueAt, type Syntax } from './document.ts';

/** A `.env` file: one variable a line. */
export const env: Syntax = {
  apply(text, edits) {
    const lines = text === '' ? [] : text.replace(/\n$/, '').split('\n');
    for (const {
      path: [name = ''],
      value,
    } of edits) {
      const at = lines.findIndex((line) => new RegExp(`^\\s*(export\\s+)?${name}\\s*=`).test(line));
      const line = typeof value === 'string' ? [`${name}=${quoted(value)}`] : [];
      if (at === -1) lines.push(...line);
      else lines.splice(at, 1, ...line);
    }
    return lines.length === 0 ? '' : `${lines.join('\n')}\n`;
  },
  read: (text, path) => valueAt(parseEnv(text) as Record<string, string>, path),
};

function quoted(value: string): string {
  return /^[\w.:/@%+=,-]*$/.test(value) ? value : `'${value.replaceAll("'", '')}'`;
}

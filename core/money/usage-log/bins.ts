/** Adds up calls by bins of their times, of the texts that sums have. */
import type { Database } from '../../state/database/index.ts';
import type { Row } from './read-rows.ts';
import type { Source } from './narrowing.ts';

/** Bins below this number are counted in an array; larger ones would be of calls that took years. */
const mostBins = 4_096;

/** Shares of calls that percentiles stand for. */
const shares = [0.5, 0.95, 0.99] as const;

/**
 * Returns a statement with the texts of all bins of each group, one after the other. `source`: rows with `bins`. Databases take five times as long
 * to add up what is in the texts as {@link percentileBins}: 30 days of hours have 500,000 counts (November 2026).
 */
export function binsStatement(kind: Database['kind'], { sql, values }: Source, group: string): Source {
  const all = kind === 'sqlite' ? "group_concat(bins, '')" : "string_agg(bins, '')";
  return { sql: `SELECT ${group} AS name, ${all} AS bins FROM (${sql}) AS source GROUP BY ${group}`, values };
}

/** Returns the rows that the statement of `percentiles.ts` would have, of those of {@link binsStatement}. */
export function percentileBins(rows: readonly Row[]): readonly Row[] {
  const counted = { ms: new Float64Array(mostBins), first: new Float64Array(mostBins) };
  return rows.flatMap(({ name, bins }) => {
    counted.ms.fill(0);
    counted.first.fill(0);
    countBins(String(bins ?? ''), counted);
    return [rowOf(name, 0, counted.ms), rowOf(name, 1, counted.first)].filter((row) => row !== undefined);
  });
}

function rowOf(name: unknown, isFirst: 0 | 1, calls: Float64Array): Row | undefined {
  const total = calls.reduce((sum, one) => sum + one, 0);
  if (total === 0) return undefined;
  let seen = 0;
  const found: number[] = [];
  for (let bin = 0; bin < calls.length && found.length < shares.length; bin += 1) {
    seen += calls[bin] ?? 0;
    while (found.length < shares.length && seen >= (shares[found.length] ?? 1) * total) found.push(bin);
  }
  const [half, most, nearlyAll] = found;
  return { name, is_first: isFirst, half, most, nearly_all: nearlyAll };
}

const [quote, letterF, comma, brace, zero, nine] = [34, 102, 44, 125, 48, 57] as const;

/** Reads texts such as `{"120":3,"f80":2}{"121":1}`. JSON's parser would make an object of each text, and a text of each name. */
function countBins(text: string, { ms, first }: Readonly<Record<'ms' | 'first', Float64Array>>): void {
  let [number, bin] = [0, -1];
  let [isName, isFirst] = [false, false];
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code >= zero && code <= nine) number = number * 10 + code - zero;
    else if (code === quote) {
      isName = !isName;
      if (isName) isFirst = false;
      else bin = Math.min(mostBins - 1, number);
      number = 0;
    } else if (code === letterF) isFirst = true;
    else if ((code === comma || code === brace) && bin >= 0) {
      const counts = isFirst ? first : ms;
      counts[bin] = (counts[bin] ?? 0) + number;
      [number, bin] = [0, -1];
    }
  }
}

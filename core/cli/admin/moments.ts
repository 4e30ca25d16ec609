/** Times on the command line. */
import { UsageError } from '../command.ts';
import { expiryOf } from '../keys/options.ts';

const units: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/**
 * Reads a moment, in milliseconds since 1970: `30d` (before now where `isPast`, else after now), `2027-01-31`, or a whole date with its zone,
 * such as `2027-01-31T12:00:00Z`.
 */
export function momentOf(flag: string, text: string, isPast: boolean): number {
  if (!isPast) return expiryOf(text, Date.now());
  const [, count, unit = ''] = /^(\d{1,5})([mhdw])$/.exec(text) ?? [];
  if (count !== undefined) return Date.now() - Number(count) * (units[unit] ?? 0);
  const at = /^\d{4}-\d\d-\d\d(?:T[\d:.]+(?:Z|[+-]\d\d:\d\d))?$/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(at))
    throw new UsageError(
      `Invalid --${flag} "${text}". Use 12h or 30d for that long ago, a day such as 2027-01-31 (UTC), or 2027-01-31T12:00:00Z.`,
    );
  return at;
}

import { z } from 'zod';
import type { JsonObject } from './model/json.ts';
import type { Units, Usage } from './model/usage.ts';
import { Tariff, rowSchema, type PriceRow } from './prices/row.ts';
import { matchesModel } from './state/api-keys.ts';

/** The `prices` of the config: by public model name or pattern, in dollars per million tokens. */
export const pricesSchema = z
  .record(z.string(), rowSchema)
  .refine((rows) => !('' in rows), 'a row has no name: it must name a model')
  .default({});

/** What a call cost. */
export interface Cost {
  readonly microDollars: number;
  /** The row that was used, with its model pattern. */
  readonly price: JsonObject;
}

/** The price table in force. An exact name wins, then the longest pattern that fits. */
export interface Prices {
  /** Undefined when the model has no price. Rounds up to whole micro-dollars. */
  cost(model: string, usage: Usage): Cost | undefined;
  /** The most that a call may cost with so many tokens: what is reserved before it. Undefined when the model has no price. */
  most(model: string, input: number, output: number, units?: Units): number | undefined;
  /** The row of a model, for people. */
  row(model: string): JsonObject | undefined;
}

/** A row, ready to calculate. */
interface Row {
  readonly shown: JsonObject;
  /** By context length, the shortest first: the row's own prices, then its tiers. */
  readonly tariffs: readonly [Tariff, ...Tariff[]];
}

/** How many names are remembered: a stranger's flood of new ones is looked up each time and fills no memory. */
const remembered = 1000;

/** Builds the table from what {@link pricesSchema} accepted. `unknown` is told once of each model that was to be charged for and has no price. */
export function createPrices(
  table: z.output<typeof pricesSchema>,
  unknown: (model: string) => void = () => {},
): Prices {
  const rows = new Map(Object.entries(table).map(([pattern, row]) => [pattern, rowOf(pattern, row)]));
  const patterns = [...rows.keys()]
    .filter((name) => name.includes('*'))
    .toSorted((one, other) => other.length - one.length)
    .map((name) => [name] as const);
  const known = new Map<string, Row | undefined>();
  const told = new Set<string>();

  const find = (model: string): Row | undefined => {
    let row = known.get(model);
    if (row !== undefined || known.has(model)) return row;
    const pattern = patterns.find((one) => matchesModel(one, model));
    row = rows.get(model) ?? (pattern === undefined ? undefined : rows.get(pattern[0]));
    if (known.size < remembered && model.length < 200) known.set(model, row);
    return row;
  };
  const tell = (model: string): undefined => {
    if (told.has(model) || told.size >= remembered) return;
    told.add(model);
    unknown(model);
  };

  return {
    cost(model, usage) {
      const row = find(model);
      if (row === undefined) return tell(model);
      const tariff =
        row.tariffs.findLast(({ above }) => above === 0 || usage.input > above) ?? row.tariffs[0];
      return { microDollars: tariff.cost(usage, usage.units ?? {}), price: tariff.shown };
    },
    most(model, input, output, units = {}) {
      const row = find(model);
      if (row === undefined) return tell(model);
      const reachable = row.tariffs.filter(({ above }) => above === 0 || input > above);
      return Math.max(...reachable.map((tariff) => tariff.most(input, output, units)));
    },
    row: (model) => find(model)?.shown,
  };
}

function rowOf(pattern: string, row: PriceRow): Row {
  const tiers = (row.tiers ?? []).toSorted((one, other) => one.above - other.above);
  const own = new Tariff(pattern, row, undefined);
  return {
    shown: row.tiers === undefined ? own.shown : { ...own.shown, tiers: tiers as unknown as JsonObject[] },
    tariffs: [own, ...tiers.map((tier) => new Tariff(pattern, row, tier))],
  };
}

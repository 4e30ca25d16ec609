/** What calls come to by the price rules of teams and organisations, beside what they cost the provider. */
import type { PriceRule } from 'sluice';
import {
  chargedMicroDollars,
  priceFor,
  type InternalTools,
  type UsageFilter,
  type UsageLog,
  type UsageSums,
} from 'sluice/internal';

type Owners = InternalTools['apiKeys']['owners'];
type Sums = readonly (UsageSums & { readonly name?: string })[];
type Charged = UsageSums & { readonly name?: string; readonly chargedMicroDollars?: number };

/** Maximum number of groups in one answer whose models are looked at, because their rule has factors by model. */
const mostByModel = 10;

/**
 * Returns what finds the rule by which calls of a team or organisation are charged. It finds none for an organisation with a team that has a
 * rule of its own, because its calls are charged by several. Owners are gone through once, for all sums of an answer.
 */
function createRules(owners: Owners): (id: string) => PriceRule | undefined {
  let mixed: ReadonlySet<string | undefined> | undefined;
  const isMixed = (organisation: string): boolean => {
    mixed ??= new Set(
      owners
        .list()
        .flatMap(({ kind, pricing, organisation: of }) =>
          kind === 'team' && pricing !== undefined ? [of] : [],
        ),
    );
    return mixed.has(organisation);
  };
  return (id) => {
    const owner = owners.find(id);
    if (owner?.kind === 'team') return owner.pricing ?? owners.find(owner.organisation ?? '')?.pricing;
    return owner?.pricing === undefined || isMixed(id) ? undefined : owner.pricing;
  };
}

/**
 * Adds to sums by team or organisation, and to those of one of them, what they come to by its price rule of today. Each record has what was
 * charged by the rule of its time; sums do not.
 */
export async function withCharged(
  { usageLog, owners }: { readonly usageLog: Pick<UsageLog, 'sums'>; readonly owners: Owners },
  by: string,
  filter: UsageFilter,
  sums: Sums,
): Promise<readonly Charged[]> {
  const { team, organisation } = filter;
  const holder = team ?? organisation;
  const ruleOf = createRules(owners);
  if (by === 'team' || by === 'organisation') {
    let left = mostByModel;
    return inOrder(sums, async (sum) => {
      const id = String(sum.group);
      const rule = ruleOf(id);
      if (rule === undefined) return sum;
      if (rule.models === undefined) return withFactor(sum, rule.factor ?? 1);
      if ((left -= 1) < 0) return sum;
      const models = (await usageLog.sums({ ...filter, [by]: id }, 'model')).sums;
      const charged = models.map((one) => chargedFor(one, rule));
      if (charged.includes(undefined)) return sum;
      return { ...sum, chargedMicroDollars: charged.reduce<number>((all, one) => all + (one ?? 0), 0) };
    });
  }
  const rule = holder === undefined ? undefined : ruleOf(holder);
  if (rule === undefined) return sums;
  if (by === 'model')
    return sums.map((sum) => {
      const charged = chargedFor(sum, rule);
      return charged === undefined ? sum : { ...sum, chargedMicroDollars: charged };
    });
  return rule.models === undefined ? sums.map((sum) => withFactor(sum, rule.factor ?? 1)) : sums;
}

function withFactor<Sum extends UsageSums>(sum: Sum, factor: number): Sum & Charged {
  return { ...sum, chargedMicroDollars: chargedMicroDollars(sum.microDollars, factor) };
}

/** Returns what the calls of a model come to. Undefined where they are charged by a price row, because sums do not tell all that it prices. */
function chargedFor({ group, microDollars }: UsageSums, rule: PriceRule): number | undefined {
  const { factor, row } = priceFor(rule, String(group));
  return row === undefined ? chargedMicroDollars(microDollars, factor) : undefined;
}

async function inOrder(
  sums: Sums,
  add: (sum: Sums[number]) => Promise<Charged> | Charged,
): Promise<readonly Charged[]> {
  const added: Charged[] = [];
  // oxlint-disable-next-line no-await-in-loop -- few of them ask the database, one after the other
  for (const sum of sums) added.push(await add(sum));
  return added;
}

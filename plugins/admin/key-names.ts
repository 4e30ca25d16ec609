/** Adds the names of keys and owners to records of the usage log. */
import type { ApiKeys, UsageRecord } from './core-types.ts';
import type { NamedRecord } from './csv.ts';

type Names = Pick<ApiKeys, 'names' | 'owners'>;

/** Number of records whose keys are looked up together. */
const batchSize = 500;

/** Returns the records with the names of their keys and owners. */
export async function withNames(apiKeys: Names, records: readonly UsageRecord[]): Promise<NamedRecord[]> {
  const names = await apiKeys.names(idsOf(records));
  return records.map((record) => named(record, names, apiKeys.owners));
}

/** Adds the names of their keys and owners to records as they come. Each key is looked up once. */
export async function* eachWithNames(
  apiKeys: Names,
  records: AsyncIterable<UsageRecord>,
): AsyncGenerator<NamedRecord> {
  const known = new Map<string, string | undefined>();
  let batch: UsageRecord[] = [];
  const finish = async (): Promise<NamedRecord[]> => {
    const unknown = idsOf(batch).filter((id) => !known.has(id));
    const names = unknown.length === 0 ? undefined : await apiKeys.names(unknown);
    for (const id of unknown) known.set(id, names?.get(id));
    const done = batch.map((record) => named(record, known, apiKeys.owners));
    batch = [];
    return done;
  };
  for await (const record of records) {
    batch.push(record);
    if (batch.length === batchSize) yield* await finish();
  }
  yield* await finish();
}

function idsOf(records: readonly UsageRecord[]): string[] {
  return [...new Set(records.flatMap(({ keyId }) => (keyId === undefined ? [] : [keyId])))];
}

function named(
  record: UsageRecord,
  names: ReadonlyMap<string, string | undefined>,
  owners: Pick<ApiKeys['owners'], 'find'>,
): NamedRecord {
  const { keyId, team, member, organisation } = record;
  const found = {
    keyName: keyId === undefined ? undefined : names.get(keyId),
    teamName: team && owners.find(team)?.name,
    memberName: member && owners.find(member)?.name,
    organisationName: organisation && owners.find(organisation)?.name,
  };
  const known = Object.entries(found).filter(([, name]) => name !== undefined);
  return known.length === 0 ? record : { ...record, ...Object.fromEntries(known) };
}

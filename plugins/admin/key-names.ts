/** Adds the names of keys to records of the usage log. */
import type { ApiKeys, UsageRecord } from 'sluice/internal';
import type { NamedRecord } from './csv.ts';

type Names = Pick<ApiKeys, 'names'>;

/** Number of records whose keys are looked up together. */
const batchSize = 500;

/** Returns the records with the names of their keys. */
export async function withKeyNames(apiKeys: Names, records: readonly UsageRecord[]): Promise<NamedRecord[]> {
  const names = await apiKeys.names(idsOf(records));
  return records.map((record) => named(record, names));
}

/** Adds the names of their keys to records as they come. Each key is looked up once. */
export async function* eachWithKeyName(
  apiKeys: Names,
  records: AsyncIterable<UsageRecord>,
): AsyncGenerator<NamedRecord> {
  const known = new Map<string, string | undefined>();
  let batch: UsageRecord[] = [];
  const finish = async (): Promise<NamedRecord[]> => {
    const unknown = idsOf(batch).filter((id) => !known.has(id));
    const names = unknown.length === 0 ? undefined : await apiKeys.names(unknown);
    for (const id of unknown) known.set(id, names?.get(id));
    const done = batch.map((record) => named(record, known));
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

function named(record: UsageRecord, names: ReadonlyMap<string, string | undefined>): NamedRecord {
  const keyName = record.keyId === undefined ? undefined : names.get(record.keyId);
  return keyName === undefined ? record : { ...record, keyName };
}

/** The rules that a user must keep before it is saved. */
import { sentenceOf } from '../api-keys/records.ts';
import type { Owners } from '../owners/index.ts';
import { UserMistake } from './index.ts';
import { parseRecord, type UserRecord } from './records.ts';

/** Returns the record of these fields. Throws a {@link UserMistake} when a field is wrong, or names an owner that there is not. */
export function checkedUser(owners: Pick<Owners, 'find'>, fields: object): UserRecord {
  const result = parseRecord(fields);
  if (!result.success) throw new UserMistake(`The user cannot be saved: ${sentenceOf(result.error)}.`);
  const { organisation, teams, member } = result.data;
  if (organisation !== undefined && owners.find(organisation)?.kind !== 'organisation')
    throw new UserMistake(`There is no organisation ${organisation}.`);
  for (const { team } of teams) {
    const found = owners.find(team);
    if (found?.kind !== 'team') throw new UserMistake(`There is no team ${team}.`);
    if (organisation !== undefined && found.organisation !== undefined && found.organisation !== organisation)
      throw new UserMistake(`The team "${found.name}" belongs to another organisation.`);
  }
  if (member !== 'new' && owners.find(member)?.kind !== 'member')
    throw new UserMistake(`There is no member ${member}.`);
  return result.data;
}

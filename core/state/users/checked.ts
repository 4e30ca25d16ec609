/** The rules that a user must keep before it is saved. */
import { sentenceOf } from '../api-keys/records.ts';
import type { Owners } from '../owners/index.ts';
import { UserMistake } from './index.ts';
import { parseRecord, type UserRecord } from './records.ts';

/**
 * Returns the record of these fields. Throws a {@link UserMistake} when a field is wrong, or names an owner that there is not. What the user
 * had `before` is not looked at again: owners are removed and moved without their users, who must go on, and be switched off.
 */
export function checkedUser(
  owners: Pick<Owners, 'find'>,
  fields: object,
  before?: Pick<UserRecord, 'organisation' | 'teams' | 'member'>,
): UserRecord {
  const result = parseRecord(fields);
  if (!result.success) throw new UserMistake(`The user cannot be saved: ${sentenceOf(result.error)}.`);
  const { organisation, teams, member } = result.data;
  const isMoved = organisation !== before?.organisation;
  if (isMoved && organisation !== undefined && owners.find(organisation)?.kind !== 'organisation')
    throw new UserMistake(`There is no organisation ${organisation}.`);
  const hadTeams = new Set(before?.teams.map(({ team }) => team));
  for (const { team } of teams) {
    const isNew = !hadTeams.has(team);
    if (!isNew && !isMoved) continue;
    const found = owners.find(team);
    if (isNew && found?.kind !== 'team') throw new UserMistake(`There is no team ${team}.`);
    if (
      organisation !== undefined &&
      found?.organisation !== undefined &&
      found.organisation !== organisation
    )
      throw new UserMistake(`The team "${found.name}" belongs to another organisation.`);
  }
  if (member !== 'new' && member !== before?.member && owners.find(member)?.kind !== 'member')
    throw new UserMistake(`There is no member ${member}.`);
  return result.data;
}

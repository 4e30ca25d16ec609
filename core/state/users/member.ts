/** The member of each user, which holds the user's keys. */
import type { MemberDefaults } from '../../settings/members.ts';
import type { OwnerChanges, Owners, PreparedOwner } from '../owners/index.ts';
import type { UserRecord } from './records.ts';

/** Makes the member of a new user, which is written together with the user. */
export function newMember(
  owners: Owners,
  { organisation: _organisation, ...limits }: MemberDefaults,
  { name, email, organisation, enabled }: UserRecord,
): Promise<PreparedOwner> {
  return owners.prepare({
    ...limits,
    kind: 'member',
    name: name === '' ? email : name,
    enabled,
    ...(organisation === undefined ? {} : { organisation }),
  });
}

/** Changes what differs of a member, unless it was removed. Returns true where anything did. */
export async function changeMember(
  owners: Owners,
  member: string,
  changes: Pick<OwnerChanges, 'organisation' | 'enabled'>,
): Promise<boolean> {
  const names = Object.keys(changes) as (keyof typeof changes)[];
  if (names.length === 0) return false;
  await owners.refresh();
  const known = owners.find(member);
  const differing = names.filter((name) => known?.[name] !== changes[name]);
  if (known === undefined || differing.length === 0) return false;
  try {
    await owners.update(member, Object.fromEntries(differing.map((name) => [name, changes[name]])));
    return true;
  } catch (error) {
    await owners.refresh();
    if (owners.find(member) !== undefined) throw error;
    // Somebody has removed it a moment ago.
    return false;
  }
}

/** Switches the member of a user on again, unless the user `isOff` by now. */
export async function switchBack(
  owners: Owners,
  member: string,
  isOff: () => Promise<boolean>,
): Promise<void> {
  if (await isOff()) return;
  await changeMember(owners, member, { enabled: true });
  // Another request that switched the user off between the two found the member off already, and left it.
  if (await isOff()) await changeMember(owners, member, { enabled: false });
}

/** Finds or makes the user that a person is, with the access that the rules give. */
import type { Log } from 'sluice';
import { UserConflict, UserMistake } from 'sluice/internal';
import type { Owners, User, UserChanges, Users } from '../core-types.ts';
import type { Person } from './claims.ts';
import type { ProviderOptions } from './options.ts';
import { SignInRefused } from './problems.ts';
import { accessOf, noAccess, ownerFinder, type Access } from './rules.ts';

/** A user after a sign-in. */
export interface SignedIn {
  readonly user: User;
  /** The user before; absent for a new one, the same object where nothing has changed. */
  readonly before?: User;
}

/** Services that finding people needs. */
export interface PeopleTools {
  readonly users: Users;
  readonly owners: Owners;
  readonly log: Log;
}

/** Notes that somebody who may not go on has lost access. */
export type NoteLoss = (lost: SignedIn) => Promise<void>;

/** Returns the user that a person is, changed by the rules. Throws {@link SignInRefused} for a person who may not sign in. */
export async function userOf(
  person: Person,
  options: ProviderOptions,
  tools: PeopleTools,
  noteLoss: NoteLoss,
): Promise<SignedIn> {
  const { users } = tools;
  // Another gateway may have made the user, or the team of a rule, a moment ago.
  await Promise.all([users.refresh(), tools.owners.refresh()]);
  checkDomain(person, options);
  const found = knownUser(person, options, users);
  const access = accessFor(person, options, tools);
  if (access === undefined) {
    if (found !== undefined) await noteLoss(await changed(found, noAccess(options.rules), users));
    throw new SignInRefused('group', `No rule of provider "${options.id}" fits ${person.subject}.`);
  }
  if (found === undefined) return { user: await created(person, access, options, users) };
  if (!found.enabled) throw new SignInRefused('disabled', `The user ${found.id} is switched off.`);
  const identity = { issuer: person.issuer, subject: person.subject };
  const isLinked = users.byIdentity(identity)?.id === found.id;
  const changes: UserChanges = {
    ...access,
    ...(isLinked ? {} : { identities: [...found.identities, identity] }),
  };
  return changed(found, changes, users);
}

/** Updates the access of a person during a session. Returns undefined for a person whose session must end. */
export async function renewedUser(
  id: string,
  person: Person,
  options: ProviderOptions,
  tools: PeopleTools,
  noteLoss: NoteLoss,
): Promise<SignedIn | undefined> {
  const found = await tools.users.current(id);
  if (found?.enabled !== true) return undefined;
  const access = accessFor(person, options, tools);
  const renewed = await changed(found, access ?? noAccess(options.rules), tools.users);
  if (access !== undefined) return renewed;
  await noteLoss(renewed);
  return undefined;
}

function accessFor(
  person: Person,
  { id, rules }: ProviderOptions,
  { owners, log }: PeopleTools,
): Access | undefined {
  const verdict = accessOf(rules, person.groups, ownerFinder(owners.list()));
  if (verdict.missingOrganisation !== undefined)
    log.error(
      { provider: id, organisation: verdict.missingOrganisation },
      'a rule of a sign-in provider names an organisation that does not exist: the person is refused',
    );
  if (verdict.missingTeams.length > 0)
    log.warn(
      { provider: id, teams: verdict.missingTeams },
      'rules of a sign-in provider name teams that do not exist',
    );
  return verdict.access;
}

function checkDomain(person: Person, { allowedDomains }: ProviderOptions): void {
  if (allowedDomains.length === 0) return;
  const domain = person.email?.split('@')[1] ?? '';
  if (!person.isEmailVerified || !allowedDomains.includes(domain))
    throw new SignInRefused('email', 'The email is not verified, or not of an allowed domain.');
}

/** Returns the user of this identity, or one that the operator lets the person be linked to. */
function knownUser(person: Person, { linksByEmail }: ProviderOptions, users: Users): User | undefined {
  const own = users.byIdentity({ issuer: person.issuer, subject: person.subject });
  if (own !== undefined) return own;
  const provisioned = person.externalId === undefined ? undefined : users.byExternalId(person.externalId);
  if (provisioned !== undefined) return provisioned;
  const same = person.email === undefined ? undefined : users.byEmail(person.email);
  if (same === undefined) return undefined;
  if (linksByEmail && person.isEmailVerified) return same;
  throw new SignInRefused('taken', `The email belongs to the user ${same.id}, to whom nobody may be linked.`);
}

async function created(
  person: Person,
  access: Access,
  { createsUsers }: ProviderOptions,
  users: Users,
): Promise<User> {
  if (!createsUsers) throw new SignInRefused('unknown', `There is no user for ${person.subject}.`);
  if (person.email === undefined) throw new SignInRefused('email', 'The provider sends no email.');
  const { role, organisation, teams } = access;
  return orRefused(
    users.create({
      email: person.email,
      name: (person.name ?? person.email).slice(0, 100),
      identities: [{ issuer: person.issuer, subject: person.subject }],
      ...(person.externalId === undefined ? {} : { externalId: person.externalId }),
      ...(role === undefined ? {} : { role }),
      ...(organisation === undefined ? {} : { organisation }),
      ...(teams === undefined ? {} : { teams }),
    }),
  );
}

/** Changes a user by what differs from what it is, because each write may end sessions. */
async function changed(found: User, changes: UserChanges, users: Users): Promise<SignedIn> {
  const needed: UserChanges = Object.fromEntries(
    Object.entries(changes).filter(
      ([name, value]) => JSON.stringify(value) !== JSON.stringify(found[name as keyof User]),
    ),
  );
  const isSame = Object.keys(needed).length === 0;
  return { before: found, user: isSame ? found : await orRefused(users.update(found.id, needed)) };
}

async function orRefused<Result>(work: Promise<Result>): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof UserConflict) throw new SignInRefused('taken', error.message);
    if (error instanceof UserMistake) throw new SignInRefused('failed', error.message);
    throw error;
  }
}

/** Invitations, passwords and second factors of users. */
import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import { hashPassword, matchesPassword } from '../password-hash.ts';
import type { Sealer } from '../../sdk/sealer.ts';
import { openSealer } from '../sealer.ts';
import type { Stores } from '../stores.ts';
import { UserMistake, type User } from './index.ts';
import type { StoredUsers } from './open.ts';
import { normalEmail, userOf, type UserRecord, type UserSecrets } from './records.ts';
import { findStep, toBase32 } from './totp.ts';

type Factor = NonNullable<UserSecrets['factor']>;

/** Shortest and longest password, in characters. */
const passwordLength = { min: 12, max: 1024 };

/** Purpose under which secrets of second factors are sealed. */
const purpose = 'second-factor';

const recoveryCodes = 10;

/** Wrong codes in a row that cost no time; first and longest time in which no code is looked at afterwards, in milliseconds. */
const free = 5;
const blockMs = { first: 1_000, longest: 15 * 60_000 };

/** A second factor that is to be put into an app, and works once a code of it has confirmed that it was. */
export interface SecondFactor {
  /** In base 32. */
  readonly secret: string;
  /** For a QR code. */
  readonly uri: string;
}

/** Result of a check of a code. */
export type CodeCheck = 'right' | 'wrong' | 'blocked';

/** Invitations, passwords and second factors. None is ever shown again. Methods that write throw a {@link UserMistake}. */
export interface Credentials {
  /** Makes an invitation in place of the one before. Its token can be used once, for so many milliseconds. */
  invite(id: string, lifetimeMs: number): Promise<{ readonly token: string; readonly expiresAt: number }>;
  /** Sets the password of whoever was invited. Undefined when no user has such an invitation, or no longer. */
  accept(token: string, password: string): Promise<User | undefined>;
  /** The user with this email and password. Takes the same time whatever the result. */
  checkPassword(email: string, password: string): Promise<User | undefined>;
  /** Sets a password and ends all sessions of the user. */
  setPassword(id: string, password: string): Promise<User>;
  /** Makes a second factor, which is not asked for until it is confirmed. One that is confirmed must be removed first. */
  startSecondFactor(id: string): Promise<SecondFactor>;
  /** Confirms it by a code, and returns the recovery codes this once; undefined when the code is wrong. */
  confirmSecondFactor(id: string, code: string): Promise<readonly string[] | undefined>;
  /** Checks a code of the app or a recovery code. Each is right once. */
  checkCode(id: string, code: string): Promise<CodeCheck>;
  removeSecondFactor(id: string): Promise<User>;
}

/** Opens what the users sign in with. */
export function openCredentials(users: StoredUsers, stores: Stores): Credentials {
  return { ...openPasswords(users), ...openSecondFactors(users, stores) };
}

async function changeSecrets(
  users: StoredUsers,
  id: string,
  change: (secrets: UserSecrets, record: UserRecord) => UserSecrets,
): Promise<User> {
  const { after } = await users.change(id, (current) => ({
    ...current,
    secrets: change(current.secrets, current),
  }));
  return userOf(after);
}

function openPasswords(
  users: StoredUsers,
): Pick<Credentials, 'invite' | 'accept' | 'checkPassword' | 'setPassword'> {
  return {
    async invite(id, lifetimeMs) {
      const secret = randomBytes(32).toString('base64url');
      const expiresAt = Date.now() + lifetimeMs;
      await changeSecrets(users, id, (secrets) => ({
        ...secrets,
        invitation: { hash: digest(secret), expiresAt },
      }));
      return { token: `${id}.${secret}`, expiresAt };
    },
    async accept(token, password) {
      const [, id = '', secret = ''] = /^(usr_\w{1,40})\.([\w-]{43})$/.exec(token) ?? [];
      const record = id === '' ? undefined : await users.readRecord(id);
      if (record === undefined || !isInvited(record, secret)) return undefined;
      checkWords(password, record);
      const made = await hashPassword(password);
      let wasInvited = false;
      const user = await changeSecrets(users, id, (secrets, current) => {
        wasInvited = isInvited(current, secret);
        if (!wasInvited) return secrets;
        const { invitation: _used, ...rest } = secrets;
        return { ...rest, password: made };
      });
      return wasInvited ? user : undefined;
    },
    async checkPassword(given, password) {
      const email = normalEmail(given);
      const known = email === undefined ? undefined : users.byEmail(email);
      // As many questions to the database, whether or not there is such a user.
      const record = await users.readRecord(known?.id ?? 'usr_nobody');
      const isRight = await matchesPassword(password, record?.secrets.password);
      return isRight && record?.enabled === true && record.email === email ? userOf(record) : undefined;
    },
    async setPassword(id, password) {
      const record = await users.readRecord(id);
      if (record === undefined) throw new UserMistake('There is no such user.');
      checkWords(password, record);
      const made = await hashPassword(password);
      return changeSecrets(users, id, ({ invitation: _over, ...secrets }) => ({
        ...secrets,
        password: made,
      }));
    },
  };
}

function openSecondFactors(
  users: StoredUsers,
  stores: Stores,
): Pick<Credentials, 'startSecondFactor' | 'confirmSecondFactor' | 'checkCode' | 'removeSecondFactor'> {
  let sealer: Promise<Sealer> | undefined;
  const opened = (): Promise<Sealer> => {
    sealer ??= openSealer(stores).catch((error: unknown) => {
      // The next who asks tries again.
      sealer = undefined;
      throw error;
    });
    return sealer;
  };

  return {
    async startSecondFactor(id) {
      const bytes = randomBytes(20);
      const secret = toBase32(bytes);
      const sealed = (await opened()).seal(purpose, id, { secret: bytes.toString('base64') });
      const factor: Factor = {
        sealed,
        confirmed: false,
        step: 0,
        recovery: [],
        failures: 0,
        blockedUntil: 0,
      };
      const user = await changeSecrets(users, id, (secrets) => {
        if (secrets.factor?.confirmed === true)
          throw new UserMistake('There is a second factor already. Remove it first.');
        return { ...secrets, factor };
      });
      const query = new URLSearchParams({
        secret,
        issuer: 'Sluice',
        algorithm: 'SHA1',
        digits: '6',
        period: '30',
      });
      return { secret, uri: `otpauth://totp/Sluice:${encodeURIComponent(user.email)}?${query}` };
    },
    async confirmSecondFactor(id, code) {
      const codes = Array.from({ length: recoveryCodes }, () => toBase32(randomBytes(10)).toLowerCase());
      const result = await judgeCode(id, code, false, (factor) => ({
        ...factor,
        confirmed: true,
        recovery: codes.map(digest),
      }));
      return result === 'right' ? codes : undefined;
    },
    checkCode: (id, code) => judgeCode(id, code, true, (factor) => factor),
    removeSecondFactor: (id) => changeSecrets(users, id, ({ factor: _gone, ...secrets }) => secrets),
  };

  /** Takes a code once: the step of a code that was right, and those before it, are refused from then on. */
  async function judgeCode(
    id: string,
    code: string,
    confirmed: boolean,
    then: (factor: Factor) => Factor,
  ): Promise<CodeCheck> {
    const seal = await opened();
    let result: CodeCheck = 'wrong';
    await changeSecrets(users, id, (secrets) => {
      const { factor } = secrets;
      const now = Date.now();
      result = 'wrong';
      if (factor === undefined || factor.confirmed !== confirmed) return secrets;
      if (factor.blockedUntil > now) {
        result = 'blocked';
        return secrets;
      }
      const taken = takeCode(factor, bytesOf(seal.open(purpose, id, factor.sealed)), code, now);
      if (taken === undefined) return { ...secrets, factor: failed(factor, now) };
      result = 'right';
      return { ...secrets, factor: then({ ...taken, failures: 0, blockedUntil: 0 }) };
    });
    return result;
  }
}

/** The factor without the code that was taken; undefined when the code is wrong. */
function takeCode(factor: Factor, secret: Uint8Array, code: string, now: number): Factor | undefined {
  const text = code.replaceAll(/[\s-]/g, '').toLowerCase();
  const step = secret.length === 0 ? undefined : findStep(secret, text, now);
  if (step !== undefined) return step > factor.step ? { ...factor, step } : undefined;
  const given = digest(text);
  const rest = factor.recovery.filter((one) => !isSame(one, given));
  return rest.length < factor.recovery.length ? { ...factor, recovery: rest } : undefined;
}

function failed(factor: Factor, now: number): Factor {
  const failures = factor.failures + 1;
  const wait = failures < free ? 0 : Math.min(blockMs.first * 2 ** (failures - free), blockMs.longest);
  return { ...factor, failures, blockedUntil: now + wait };
}

function isInvited({ secrets: { invitation } }: UserRecord, secret: string): boolean {
  return (
    invitation !== undefined && invitation.expiresAt > Date.now() && isSame(invitation.hash, digest(secret))
  );
}

/** Throws for a password that is too short, or is the email or name of its user. */
function checkWords(password: string, { email, name }: UserRecord): void {
  const { length } = [...password];
  if (length < passwordLength.min || password.length > passwordLength.max)
    throw new UserMistake(`A password must have ${passwordLength.min} to ${passwordLength.max} characters.`);
  const plain = password.toLowerCase();
  const [local = ''] = email.split('@');
  const isOwn = [email, local, name.toLowerCase()].some((word) => word.length >= 4 && plain.includes(word));
  if (isOwn) throw new UserMistake('A password must not contain your email address or your name.');
  if (new Set(plain).size < 5)
    throw new UserMistake('A password must have at least five different characters.');
}

function bytesOf(opened: { readonly [name: string]: unknown } | undefined): Uint8Array {
  const text = opened?.['secret'];
  return typeof text === 'string' ? Buffer.from(text, 'base64') : new Uint8Array();
}

function digest(text: string): string {
  return hash('sha256', text);
}

function isSame(one: string, other: string): boolean {
  return one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other));
}

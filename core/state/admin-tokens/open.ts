/** Tokens of the admin API, in the database. */
import { hash } from 'node:crypto';
import { z } from 'zod';
import { randomBase62, sentenceOf } from '../api-keys/records.ts';
import { entriesOf, type ReportError, type Stores } from '../stores.ts';
import { adminTokenPrefix } from '../../sdk/admin-token.ts';
import { maxScopes, maxTokens, tokenDays, tokenShares, TokenMistake } from './index.ts';
import type { AdminToken, AdminTokens, NewAdminToken } from './index.ts';

/** Namespaces of the tokens, by the hashes of their values, and of the times of their last uses, by their ids. */
const namespace = 'admin-tokens';
const usesNamespace = 'admin-token-uses';

const day = 86_400_000;

/** For how long an expired token is kept, so that whoever sends it learns why it is refused, in milliseconds. */
const keptExpiredMs = 30 * day;

/** How often the use of a token is written down, in milliseconds. */
const noteEvery = 60_000;

/** Characters of a value behind its prefix: 238 bits. */
const valueLength = 40;

const shape = new RegExp(`^${adminTokenPrefix}[0-9A-Za-z]{${valueLength}}$`);

const recordSchema: z.ZodType<AdminToken> = z.object({
  id: z.string(),
  name: z.string().min(1, 'must not be empty').max(200, 'must be at most 200 characters'),
  suffix: z.string(),
  role: z.enum(['admin', 'auditor']),
  scopes: z.array(z.string().max(60)).min(1, 'must not be empty').max(maxScopes, 'has too many entries'),
  organisation: z.string().max(100).exactOptional(),
  createdBy: z.object({ kind: z.string(), id: z.string(), name: z.string() }),
  author: z.object({ kind: z.string(), id: z.string() }).exactOptional(),
  createdAt: z.int(),
  expiresAt: z.int(),
});

/** Opens the tokens that are kept in these stores. `report` gets the errors of records that cannot be read. */
export function openAdminTokens(stores: Stores, report: ReportError = () => {}): AdminTokens {
  const kept = stores.namespace<unknown>(namespace);
  const uses = usesOf(stores);
  const noteUse = useNoter(uses, report);

  function decode(row: string, value: unknown): AdminToken | undefined {
    if (value === undefined) return undefined;
    const result = recordSchema.safeParse(value);
    if (result.success) return result.data;
    report(
      new Error(`The admin token stored as ${row.slice(0, 12)}… does not work: ${sentenceOf(result.error)}.`),
    );
    return undefined;
  }

  async function all(): Promise<(readonly [row: string, token: AdminToken])[]> {
    const found: (readonly [string, AdminToken])[] = [];
    for await (const [row, value] of entriesOf(kept)) {
      const token = decode(row, value);
      if (token !== undefined) found.push([row, token]);
    }
    return found;
  }

  /** Returns the author of a token that is made by a token, so that a chain of tokens counts in one share. */
  async function authorOf({ createdBy: { kind, id } }: NewAdminToken): Promise<AdminToken['author']> {
    if (kind !== 'token') return undefined;
    const maker = (await all()).map(([, token]) => token).find((token) => token.id === id);
    if (maker === undefined) return undefined;
    const root = rootOf(maker);
    // A token that an operator has given to somebody is an author of its own. That of a command is the operator's hand.
    return isOperator(root) && maker.createdBy.kind !== 'command-line' ? undefined : root;
  }

  async function list(): Promise<readonly AdminToken[]> {
    const tokens = (await all()).map(([, token]) => token);
    const times = tokens.length === 0 ? [] : await uses.getMany(tokens.map(({ id }) => id));
    return tokens
      .map((token, index) => {
        const lastUsedAt = times[index];
        return lastUsedAt === undefined ? token : { ...token, lastUsedAt };
      })
      .toSorted((one, other) => other.createdAt - one.createdAt);
  }

  return {
    async find(value) {
      if (!shape.test(value)) return undefined;
      const row = hash('sha256', value);
      const token = decode(row, await kept.get(row));
      if (token !== undefined && token.expiresAt > Date.now()) noteUse(token);
      return token;
    },
    byId: async (id) => (await list()).find((token) => token.id === id),
    list,
    async create(fields) {
      const value = `${adminTokenPrefix}${randomBase62(valueLength)}`;
      const author = await authorOf(fields);
      const token = checked({ ...fields, ...(author && { author }) }, value);
      const row = hash('sha256', value);
      await kept.set(row, token, token.expiresAt + keptAfter(token) - token.createdAt);
      // Counted after the writing, so that several who make one at once cannot exceed the maximum together.
      const problem = crowding(
        (await all()).map(([, one]) => one),
        token,
      );
      if (problem !== undefined) {
        await kept.delete(row);
        throw new TokenMistake(`${problem} Revoke some that nobody needs.`);
      }
      return { token, value };
    },
    async revoke(id) {
      const found = (await all()).find(([, token]) => token.id === id);
      if (found === undefined || !(await kept.delete(found[0]))) return undefined;
      await uses.delete(id);
      return found[1];
    },
  };
}

function usesOf(stores: Stores) {
  return stores.namespace<number>(usesNamespace);
}

/** Returns a function that writes the use of a token down, once a minute at most. */
function useNoter(uses: ReturnType<typeof usesOf>, report: ReportError): (token: AdminToken) => void {
  /** When this process wrote the use of each token down. */
  const noted = new Map<string, number>();
  return (token) => {
    const { id, expiresAt } = token;
    const now = Date.now();
    if (now - (noted.get(id) ?? 0) < noteEvery) return;
    if (noted.size > maxTokens) noted.clear();
    noted.set(id, now);
    // Nobody waits for this: a request must not fail because its time could not be written.
    uses
      .set(id, now, expiresAt + keptAfter(token) - now)
      .catch((cause: unknown) =>
        report(new Error('The use of an admin token could not be noted.', { cause })),
      );
  };
}

/** Returns the sentence that says why there are too many tokens, the new one among them; undefined where there are not. */
function crowding(tokens: readonly AdminToken[], made: AdminToken): string | undefined {
  // The command line lists and revokes tokens with one of its own, also where there are too many.
  if (made.createdBy.kind === 'command-line') return undefined;
  const { organisation } = made;
  if (tokens.length > maxTokens) return `There are ${maxTokens} tokens already.`;
  const count = (isMeant: (one: AdminToken) => boolean): number => tokens.filter(isMeant).length;
  if (
    organisation !== undefined &&
    count((one) => one.organisation === organisation) > tokenShares.organisation
  )
    return `This organisation has ${tokenShares.organisation} tokens already.`;
  const root = rootOf(made);
  const isOfSame = (one: AdminToken): boolean => {
    const { kind, id } = rootOf(one);
    return kind === root.kind && id === root.id;
  };
  if (!isOperator(root) && count(isOfSame) > tokenShares.author)
    return `You have made ${tokenShares.author} tokens already.`;
  return undefined;
}

type Author = NonNullable<AdminToken['author']>;

/** Returns in whose share a token counts. */
function rootOf({ author, createdBy: { kind, id } }: AdminToken): Author {
  return author ?? { kind, id };
}

function isOperator({ kind }: Author): boolean {
  return kind === 'password' || kind === 'command-line';
}

/** For how long a token is kept once it has expired. Nobody will send that of a command again. */
function keptAfter({ createdBy }: AdminToken): number {
  return createdBy.kind === 'command-line' ? 0 : keptExpiredMs;
}

/** Returns the record of a new token. Throws a {@link TokenMistake} that names the field. */
function checked(fields: NewAdminToken & Pick<AdminToken, 'author'>, value: string): AdminToken {
  const { createdAt, expiresAt } = fields;
  if (!(expiresAt > createdAt && expiresAt <= createdAt + tokenDays.longest * day))
    throw new TokenMistake(`A token must expire within ${tokenDays.longest} days.`);
  const result = recordSchema.safeParse({
    ...fields,
    id: `tok_${randomBase62(16)}`,
    suffix: value.slice(-4),
  });
  if (result.success) return result.data;
  throw new TokenMistake(`The token cannot be saved: ${sentenceOf(result.error)}.`);
}

/** Tags and end users, by which calls are attributed. */
import { hash } from 'node:crypto';
import type { ApiKey } from '../../sdk/api-key.ts';
import type { HeldBudget } from '../../sdk/budget.ts';
import { GatewayError } from '../../sdk/errors.ts';
import { ownerName } from '../../sdk/owner.ts';
import type { ChargedHolders } from '../ledger/charged-holders.ts';
import { endUserPrefix, isEndUser, seriesIn, type HolderSeries } from '../ledger/windows.ts';

/** Tags and end user of a call. */
export interface Attribution {
  readonly tags?: readonly string[];
  readonly endUser?: string;
}

/** Maximum number of tags of a call, with those of its key. */
const maxTags = 20;

/** Maximum number of characters of the header that brings tags: 20 of 64 characters, with commas. */
const maxHeader = 1_400;

/** Maximum number of characters of an end user's name. Of a longer one a hash is kept. */
const maxEndUser = 128;

const tag = /^[\p{L}\p{N}][\p{L}\p{N} _.:/@=+-]{0,63}$/u;

/**
 * Returns the tags of a call: those of its key, and those in its header `x-sluice-tags`, separated by commas. Throws 400 where the key does not
 * allow them, or they are no tags.
 */
export function tagsOf(
  { tags = [], callTags }: Pick<ApiKey, 'tags' | 'callTags'>,
  header: string | readonly string[] | undefined,
): readonly string[] | undefined {
  if (header === undefined) return tags.length === 0 ? undefined : tags;
  const text = String(header);
  if (callTags !== true) throw wrongTags('This API key does not allow the header x-sluice-tags.');
  if (text.length > maxHeader) throw wrongTags(`x-sluice-tags must be at most ${maxHeader} characters.`);
  const own = text.split(',').map((one) => one.trim());
  if (!own.every((one) => tag.test(one)))
    throw wrongTags('Tags in x-sluice-tags must be 1 to 64 letters, digits, spaces and _.:/@=+-.');
  const all = [...new Set([...tags, ...own])];
  if (all.length > maxTags)
    throw wrongTags(`A call can have at most ${maxTags} tags, including those of its key.`);
  return all;
}

function wrongTags(message: string): GatewayError {
  return new GatewayError('invalid_value', message, { param: 'x-sluice-tags' });
}

/**
 * Returns the end user that a request names: `safety_identifier`, `user` or `metadata.user_id`. Without what follows `_session_`, which Claude
 * Code appends and which changes with each conversation. Of more than 128 characters a hash is returned.
 */
export function endUserOf(body: Readonly<Record<string, unknown>>): string | undefined {
  const { safety_identifier: safety, user, metadata } = body;
  const id =
    typeof metadata === 'object' && metadata !== null && 'user_id' in metadata ? metadata.user_id : undefined;
  const named = [safety, user, id].find((one) => typeof one === 'string' && one !== '');
  if (typeof named !== 'string') return undefined;
  const session = named.slice(0, 1_000).indexOf('_session_');
  const name = session > 0 ? named.slice(0, session) : named;
  if (name.length > maxEndUser) return `sha256:${hash('sha256', name)}`;
  // oxlint-disable-next-line no-control-regex -- they are taken out
  return name.replaceAll(/[\u0000-\u001f\u007f]/g, ' ').toWellFormed();
}

/** Returns by what a call is attributed. Throws 400 for tags that it may not bring. */
export function attributionOf(key: ApiKey | undefined, call: AttributedCall): Attribution {
  const tags = tagsOf(key ?? {}, call.wire.headers['x-sluice-tags']);
  const endUser = endUserOf(call.bodyOutline);
  return { ...(tags === undefined ? {} : { tags }), ...(endUser === undefined ? {} : { endUser }) };
}

/** The members of a call that are read for it. */
interface AttributedCall {
  readonly bodyOutline: Readonly<Record<string, unknown>>;
  readonly wire: { readonly headers: Readonly<Record<string, string | readonly string[] | undefined>> };
}

/** Returns the budgets of the end user of a call, of its key and of owners of the key. Calls that name nobody have one together. */
export function endUserBudgets(key: ApiKey, endUser = ''): readonly HeldBudget[] {
  const owners = key.owners ?? [];
  // Builds nothing here because most keys have no such budget, and this runs for every call.
  if (key.endUserBudget === undefined && owners.every(({ endUserBudget }) => endUserBudget === undefined))
    return [];
  const scopes = [
    { id: key.id, name: 'this API key', budget: key.endUserBudget },
    ...owners.map((owner) => ({
      id: owner.id,
      name: ownerName(owner),
      budget: owner.endUserBudget,
    })),
  ];
  return scopes.flatMap(({ id, name, budget }) =>
    budget === undefined
      ? []
      : {
          ...budget,
          owner: {
            id: `${endUserPrefix}${hash('sha256', `${id} ${endUser}`).slice(0, 32)}`,
            name:
              endUser === ''
                ? `calls of ${name} without an end user`
                : `the end user "${endUser}" of ${name}`,
            scope: id,
          },
        },
  );
}

/** Adds end users to those who are charged. */
export function withEndUsers(holders: ChargedHolders, budgets: readonly HeldBudget[]): ChargedHolders {
  return {
    ...holders,
    owners: [...holders.owners, ...budgets.flatMap(({ owner }) => owner?.id ?? [])],
    series: [...holders.series, ...seriesIn('', budgets)],
  };
}

/** Returns the series of end users among those that a call is charged to, for what is given back later: no key leads to them. */
export function endUserSeries(series: readonly HolderSeries[] = []): readonly HolderSeries[] {
  return series.filter(({ holder }) => isEndUser(holder));
}

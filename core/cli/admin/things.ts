/** Finds things by id or name. */
import { z } from 'zod';
import type { JsonObject } from '../../model/json.ts';
import { UsageError } from '../command.ts';
import type { AdminRequester } from '../remote.ts';
import { CommandFailure, exitCodes } from './failure.ts';

/** Endpoint that lists things of a kind, and the field that names them besides `id` and `name`. */
interface ThingList {
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly items: string;
  /** Pattern of its ids. */
  readonly id: RegExp;
  readonly also?: string;
  /** True when the list has one page and no search. */
  readonly isWhole?: true;
}

const owners = { path: '/owners', items: 'owners' };
const lists = {
  organization: { ...owners, query: { kind: 'organisation' }, id: /^org_\w+$/ },
  team: { ...owners, query: { kind: 'team' }, id: /^team_\w+$/ },
  member: { ...owners, query: { kind: 'member' }, id: /^mem_\w+$/ },
  'service-account': { ...owners, query: { kind: 'service-account' }, id: /^svc_\w+$/ },
  owner: { ...owners, query: {}, id: /^(?:org|team|mem|svc)_\w+$/ },
  user: { path: '/users', query: {}, items: 'users', id: /^usr_\w+$/, also: 'email' },
  key: { path: '/keys', query: {}, items: 'keys', id: /^key_\w+$/ },
  token: { path: '/tokens', query: {}, items: 'tokens', id: /^tok_\w+$/, isWhole: true },
} as const satisfies Readonly<Record<string, ThingList>>;

/** Kinds of things. `budgeted` is a key or an owner of keys. */
export type ThingKind = keyof typeof lists | 'budgeted';

/** Fields whose values are ids of things. */
export const ownerFlags: Readonly<Record<string, ThingKind>> = {
  organisation: 'organization',
  team: 'team',
  member: 'owner',
  owner: 'owner',
  keyId: 'key',
};

/** Returns true for a text in the form of an id, also if the thing does not exist. */
export function isId(kind: ThingKind, text: string): boolean {
  return kind !== 'budgeted' && lists[kind].id.test(text);
}

const named = z.looseObject({ id: z.string() });

/** Finds one thing. Rejects when nothing, or more than one thing, matches. */
export async function findThing(request: AdminRequester, kind: ThingKind, text: string): Promise<JsonObject> {
  if (text.startsWith('sk-') && text.length > 32)
    throw new UsageError('Use the id or the name of the key, not its secret.');
  const kinds = kind === 'budgeted' ? (['owner', 'key'] as const) : [kind];
  const byId = kinds.map((one): ThingList => lists[one]).find(({ id }) => id.test(text));
  if (byId !== undefined && byId.isWhole !== true)
    return named.parse(await request('GET', `${byId.path}/${encodeURIComponent(text)}`)) as JsonObject;
  const found: JsonObject[] = [];
  // oxlint-disable-next-line no-await-in-loop -- one list after the other
  for (const one of kinds) found.push(...(await search(request, lists[one], text)));
  const [first, ...others] = found;
  const what = kind === 'budgeted' ? 'owner or key' : kind.replace('-', ' ');
  if (first === undefined) throw new CommandFailure(`There is no ${what} "${text}".`, exitCodes.missing);
  if (others.length === 0) return first;
  const ids = found.slice(0, 10).map(({ id, name }) => `${String(id)} (${String(name)})`);
  throw new CommandFailure(
    `"${text}" matches ${found.length} entries. Use the id of one: ${ids.join(', ')}.`,
  );
}

/** Maximum number of pages that are searched for a name. */
const mostPages = 200;

async function search(request: AdminRequester, list: ThingList, text: string): Promise<JsonObject[]> {
  const found: JsonObject[] = [];
  let after: string | undefined;
  for (let page = 0; page < mostPages; page += 1) {
    const query = new URLSearchParams(
      list.isWhole === true ? {} : { ...list.query, search: text, limit: '500', ...(after && { after }) },
    );
    // oxlint-disable-next-line no-await-in-loop -- each page begins where the one before ended
    const answer = z.record(z.string(), z.json()).parse(await request('GET', `${list.path}?${query}`));
    const items = z.array(named).parse(answer[list.items]) as JsonObject[];
    found.push(...items.filter((item) => isCalled(item, list, text)));
    after = typeof answer['next'] === 'string' ? answer['next'] : undefined;
    if (after === undefined) break;
  }
  return found;
}

function isCalled(item: JsonObject, { also }: ThingList, text: string): boolean {
  return item['id'] === text || item['name'] === text || (also !== undefined && item[also] === text);
}

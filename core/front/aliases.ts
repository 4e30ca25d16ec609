/** Maps alias URLs (paths of other APIs for the same formats) to the gateway's own endpoints, and adjusts the request bodies accordingly. */
import type { Context, Middleware } from 'koa';
import { editMembers } from '../json/edit-members.ts';
import { readMembers } from '../json/members.ts';
import { plainName, type Form } from '../model/form.ts';
import type { JsonObject } from '../model/json.ts';
import type { Wire } from '../sdk/call.ts';
import type { Format, ResolvedAlias } from '../sdk/format.ts';

/** Returns the gateway's own path for an alias; undefined where the path is no alias. */
export type ResolveAlias = (path: string, query: string) => ResolvedAlias | undefined;

/** Builds the resolver of all aliases of these formats. */
export function createAliasResolver(formats: readonly Format[]): ResolveAlias {
  const all = formats.flatMap(({ aliases = [] }) => aliases);
  return (path, query) => {
    for (const alias of all) {
      const found = path.startsWith(alias.prefix)
        ? alias.resolve(path, new URLSearchParams(query))
        : undefined;
      if (found !== undefined) return found;
    }
    return undefined;
  };
}

interface AliasState {
  alias?: ResolvedAlias;
}

/** Replaces the URL of an alias by that of the endpoint, before the router sees the request. */
export function resolveAliases(resolve: ResolveAlias): Middleware {
  return (ctx, next) => {
    const alias = resolve(ctx.path, ctx.querystring);
    if (alias !== undefined) {
      (ctx.state as AliasState).alias = alias;
      ctx.url = urlOf(alias, ctx.querystring);
    }
    return next();
  };
}

/** Returns the URL (path and query) of the endpoint for the URL of a WebSocket request, which may be an alias. */
export function resolvedUrl(resolve: ResolveAlias, url: string): string {
  const mark = url.indexOf('?');
  const [path, query] = mark < 0 ? [url, ''] : [url.slice(0, mark), url.slice(mark + 1)];
  const alias = resolve(path, query);
  return alias === undefined ? url : urlOf(alias, query);
}

function urlOf({ path, query }: ResolvedAlias, given: string): string {
  const text = query === undefined ? given : query.toString();
  return text === '' ? path : `${path}?${text}`;
}

/** Returns the alias in a request's URL; undefined for most. */
export function aliasOf(ctx: Context): ResolvedAlias | undefined {
  return (ctx.state as AliasState).alias;
}

/**
 * Returns the JSON body of a request to an alias as the endpoint expects it, and sets the header that the alias has as a member of the body.
 * Returns the same bytes where nothing differs.
 */
export function resolvedBody(bytes: Buffer, { members, header }: ResolvedAlias, wire: Wire): Buffer {
  const names = [...Object.keys(members ?? {}), ...(header === undefined ? [] : [header.member])];
  if (names.length === 0) return bytes;
  const given = readMembers(bytes, names);
  if (given === undefined) return bytes;
  const edits: Record<string, JsonObject[string] | undefined> = {};
  for (const [name, value] of Object.entries(members ?? {})) if (given[name] !== value) edits[name] = value;
  if (header !== undefined) {
    wire.headers[header.name] ||= header.value(given[header.member]);
    edits[header.member] = undefined;
  }
  return Object.keys(edits).length === 0 ? bytes : editMembers(bytes, edits);
}

/** Returns a form to an alias, and its fields, with the members that the alias sets. */
export function resolvedForm(
  read: { readonly form: Form; readonly fields: JsonObject },
  { members = {} }: ResolvedAlias,
): { readonly form: Form; readonly fields: JsonObject } {
  const parts = read.form.filter(({ name }) => !Object.hasOwn(members, plainName(name)));
  const set = Object.entries(members).map(([name, value]) => ({ name, value: String(value) }));
  return { form: [...set, ...parts], fields: { ...read.fields, ...members } };
}

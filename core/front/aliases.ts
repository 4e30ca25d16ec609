import type { Context, Middleware } from 'koa';
import { editMembers } from '../json/edit-members.ts';
import { readMembers } from '../json/members.ts';
import { plainName, type Form } from '../model/form.ts';
import type { JsonObject } from '../model/json.ts';
import type { Wire } from '../sdk/call.ts';
import type { Format, ResolvedAlias } from '../sdk/format.ts';

/** Returns the address of a request's path here; undefined where the path is no alias. */
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

/** Puts the address here in place of an alias, before the router sees the request. */
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

/** The URL, path and query alone, of a request for a WebSocket that came to this one. */
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

/** The alias by which a request came; undefined for most. */
export function aliasOf(ctx: Context): ResolvedAlias | undefined {
  return (ctx.state as AliasState).alias;
}

/**
 * The JSON body of a request that came by an alias, as it would have been sent to the address here. Sets the header that the body named.
 * The same bytes where they are that already.
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

/** A form that came by an alias, and its fields, with the members that the alias gives. */
export function resolvedForm(
  read: { readonly form: Form; readonly fields: JsonObject },
  { members = {} }: ResolvedAlias,
): { readonly form: Form; readonly fields: JsonObject } {
  const parts = read.form.filter(({ name }) => !Object.hasOwn(members, plainName(name)));
  const set = Object.entries(members).map(([name, value]) => ({ name, value: String(value) }));
  return { form: [...set, ...parts], fields: { ...read.fields, ...members } };
}

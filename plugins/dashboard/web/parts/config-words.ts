/** Words for run-time entries, and what came of a change. */
import type { ConfigChanged, ConfigEntryView } from '../../../admin/schemas/index.ts';
import { ApiError } from './api.ts';
import type { PathProblems } from './schema-fields.tsx';
import { showToast } from './toasts.tsx';

/** Kinds of entries: their names as tabs, and one of them. */
export const kinds = [
  ['channel', 'Channels', 'channel'],
  ['alias', 'Aliases', 'alias'],
  ['price', 'Prices', 'price'],
  ['access', 'Model access', 'model access'],
  ['plugin', 'Plugin options', 'plugin option'],
] as const satisfies readonly (readonly [ConfigEntryView['kind'], string, string])[];

/** Returns the name of one entry of a kind. */
export function oneOf(kind: ConfigEntryView['kind']): string {
  return kinds.find(([name]) => name === kind)?.[2] ?? kind;
}

/** Meaning of a name, by kind. */
export const nameHints: Readonly<Record<ConfigEntryView['kind'], string>> = {
  channel: 'Id of the channel.',
  alias: 'The other name by which clients ask for the model.',
  price: 'A model, or a pattern with *.',
  access: 'Id of an API key, a team, a member or an organisation; * for all.',
  plugin: '',
};

/** Description of a kind of entries, shown when the list is empty. */
export const kindHints: Readonly<Record<ConfigEntryView['kind'], string>> = {
  channel: 'A channel connects the gateway to an account at a provider.',
  alias: 'An alias is another name by which clients ask for a model.',
  price: 'A price counts in place of the one that the gateway knows.',
  access: 'Model access limits the models of all API keys, or those of a key or an owner.',
  plugin: 'Some options of plugins can be changed while the gateway runs.',
};

/** Shows whether this gateway runs a change. */
export function showChangeResult(what: string, { applied }: ConfigChanged): void {
  if (applied === undefined) showToast(`${what} The gateway is still putting it in force.`);
  else if (applied.ok) showToast(`${what} It is in force.`);
  else showToast(`${what} It could not be put in force: ${applied.problems.join(' ')}`, 'bad');
}

/** Problems of an entry at their fields, and those that belong to none. */
interface FoundProblems {
  readonly at: PathProblems;
  readonly others: readonly string[];
}

/** Returns the problems of an error response. `hasField` returns true for options that the form shows. */
export function problemsOf(
  error: Error,
  { kind, name }: Pick<ConfigEntryView, 'kind' | 'name'>,
  hasField: (option: string) => boolean,
): FoundProblems {
  if (!(error instanceof ApiError)) return { at: {}, others: [error.message] };
  const { param = '', message, problems } = error;
  const shown = problems.length > 0 ? problems : [{ option: fieldOf(param), message }];
  const at: Record<string, string> = {};
  const others: string[] = [];
  for (const one of shown) {
    const path = one.option === undefined ? '' : pathWithin({ kind, name }, one.option);
    if (path !== '' && hasField(path.split('.')[0] ?? '')) at[path] ??= one.message;
    else others.push(one.message);
  }
  return { at, others };
}

/** Returns the option that `value.options.key` names. */
function fieldOf(param: string): string | undefined {
  return /^value\.(?:options\.)?(.+)$/.exec(param)?.[1];
}

/** Returns a path within the value of an entry, from one in the config file. */
export function pathWithin({ kind, name }: Pick<ConfigEntryView, 'kind' | 'name'>, option: string): string {
  if (kind === 'channel') return option;
  const roots = {
    price: `prices.${name}`,
    alias: `aliases.${name}`,
    access: `models.${name}`,
    plugin: name.slice(name.indexOf('.') + 1),
  };
  const root = roots[kind];
  return option === root ? '' : option.startsWith(`${root}.`) ? option.slice(root.length + 1) : option;
}

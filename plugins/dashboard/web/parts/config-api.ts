/** Calls of the admin API about run-time configuration. */
import type {
  ChannelFormView,
  ChannelTestResult,
  ConfigChanged,
  ConfigEntryView,
  ConfigForms,
  ConfigHistory,
  ConfigPage,
} from '../../../admin/schemas/index.ts';
import { ask, at, queryOf } from './api.ts';

/** Filter of entries. */
interface ConfigQuery {
  readonly kind: ConfigEntryView['kind'];
  readonly search?: string;
}

/** Name of an entry. */
export type ConfigName = Pick<ConfigEntryView, 'kind' | 'name'>;

const pathOf = ({ kind, name }: ConfigName): string => `config/entries/${at(`${kind}:${name}`)}`;

/** Every function rejects with an `ApiError`. */
export const configApi = {
  list: (query: ConfigQuery, after: string | undefined) =>
    ask<ConfigPage>('GET', `config${queryOf({ ...query, limit: 500, after })}`),
  find: (named: ConfigName) => ask<ConfigEntryView>('GET', pathOf(named)),
  create: (entry: ConfigName & { readonly value: unknown }) => ask<ConfigChanged>('POST', 'config', entry),
  /** 412 if the entry was changed since `version`. */
  update: (named: ConfigName, version: number, value: unknown) =>
    ask<ConfigChanged>('PATCH', pathOf(named), { version, value }),
  turn: (named: ConfigName, version: number, on: boolean) =>
    ask<ConfigChanged>('POST', `${pathOf(named)}/${on ? 'enable' : 'disable'}`, { version }),
  remove: (named: ConfigName, version: number) =>
    ask<ConfigChanged>('DELETE', `${pathOf(named)}?version=${version}`),
  order: (names: readonly string[], revision: number) =>
    ask<ConfigChanged>('POST', 'config/order', { names, revision }),
  /** Sends a tiny call through a channel that need not be stored. */
  test: (name: string, value: unknown, model: string) =>
    ask<ChannelTestResult>('POST', 'config/test', { name, value, ...(model !== '' && { model }) }),
  types: () => ask<{ readonly types: readonly string[] }>('GET', 'config/channel-types'),
  type: (name: string) => ask<ChannelFormView>('GET', `config/channel-types/${at(name)}`),
  forms: () => ask<ConfigForms>('GET', 'config/plugin-options'),
  history: (before: number | undefined) =>
    ask<ConfigHistory>('GET', `config/history${queryOf({ limit: 20, before })}`),
  undo: (revision: number) => ask<ConfigChanged>('POST', `config/history/${revision}/undo`, {}),
};

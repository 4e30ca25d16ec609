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
import { sendRequest, at, queryOf } from './api.ts';

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
    sendRequest<ConfigPage>('GET', `config${queryOf({ ...query, limit: 500, after })}`),
  find: (named: ConfigName) => sendRequest<ConfigEntryView>('GET', pathOf(named)),
  create: (entry: ConfigName & { readonly value: unknown }) =>
    sendRequest<ConfigChanged>('POST', 'config', entry),
  /** 412 if the entry was changed since `version`. */
  update: (named: ConfigName, version: number, value: unknown) =>
    sendRequest<ConfigChanged>('PATCH', pathOf(named), { version, value }),
  setEnabled: (named: ConfigName, version: number, on: boolean) =>
    sendRequest<ConfigChanged>('POST', `${pathOf(named)}/${on ? 'enable' : 'disable'}`, { version }),
  remove: (named: ConfigName, version: number) =>
    sendRequest<ConfigChanged>('DELETE', `${pathOf(named)}?version=${version}`),
  order: (names: readonly string[], revision: number) =>
    sendRequest<ConfigChanged>('POST', 'config/order', { names, revision }),
  /** Sends a tiny call through a channel that need not be stored. */
  test: (name: string, value: unknown, model: string) =>
    sendRequest<ChannelTestResult>('POST', 'config/test', { name, value, ...(model !== '' && { model }) }),
  types: () => sendRequest<{ readonly types: readonly string[] }>('GET', 'config/channel-types'),
  type: (name: string) => sendRequest<ChannelFormView>('GET', `config/channel-types/${at(name)}`),
  forms: () => sendRequest<ConfigForms>('GET', 'config/plugin-options'),
  history: (before: number | undefined) =>
    sendRequest<ConfigHistory>('GET', `config/history${queryOf({ limit: 20, before })}`),
  undo: (revision: number) => sendRequest<ConfigChanged>('POST', `config/history/${revision}/undo`, {}),
};

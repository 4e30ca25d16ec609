/**
 * Builds channels for providers that are reached over HTTP from one declaration: base URL, headers, keys, formats, model list, WebSocket
 * sessions and batches.
 */
import type { ZodObject } from 'zod';
import {
  defineChannel,
  parseObject,
  matchesName,
  type ChannelConfig,
  type ChannelEntry,
  type ChannelKind,
  type ChannelOptions,
  type ChannelSpec,
  type ChannelTools,
  type JsonObject,
  type ModelTraits,
  type UpstreamRequest,
  type ChannelParts,
} from 'sluice';
import { version } from 'sluice/channel-kit';
import { withBatchDialect, type BatchDialect } from '../batches/batch-dialect.ts';
import { readModelList, type ListedPrices } from './model-list.ts';
import { overSockets } from './realtime.ts';

/** Declaration of a provider, for all its models. */
export interface HttpProvider {
  /** Base URL of the provider's paths; `baseUrl` in the config replaces it. It may have a query. */
  readonly baseUrl: string;
  /** Returns the headers that carry a key, in lower case. `key` is undefined when the config gives none. */
  headers(key: string | undefined): Readonly<Record<string, string>>;
  /** Formats of each operation, best first. */
  readonly speaks: ChannelParts['speaks'];
  /** Codecs of words of its own: see `ChannelParts.codecs`. */
  readonly codecs?: ChannelParts['codecs'];
  /** Objects that the provider keeps: see `ChannelParts.keeps`. */
  readonly keeps?: ChannelParts['keeps'];
  /** Price of batches: see `ChannelParts.batchShare`. */
  readonly batchShare?: number;
  /** Headers for requests that bring none of that name, in lower case. */
  readonly defaults?: Readonly<Record<string, string>>;
  /** Returns the traits of a model by the provider's name. */
  traits?(model: string): ModelTraits;
  /** Traits for models that are known to reason only from the catalogue: see `ChannelParts.thinking`. */
  readonly thinking?: ModelTraits;
  /** Path and query of the provider's list of models. Absent for a provider without one. */
  readonly modelList?: string;
  /** Fields of the body that the provider spells otherwise, or (null) refuses. */
  readonly fields?: Readonly<Record<string, string | null>>;
  /** Returns the price in an entry of the model list, if the provider lists prices: see `PricedModel`. */
  readonly listedPrices?: ListedPrices;
  /** Reads the cost of a call: see `ChannelParts.statedCost`. */
  readonly statedCost?: NonNullable<ChannelParts['statedCost']>;
  /** Differences of the batch API from that of chat completions. */
  readonly batches?: BatchDialect | ((tools: ChannelTools) => BatchDialect);
  /** Further endpoints of the provider, at other addresses. */
  beside?(parts: ChannelParts, options: ChannelOptions, tools: ChannelTools): ChannelParts;
}

/** A channel kind that takes no options of its own, so that a misspelt one is red in the editor. */
export interface PlainChannelKind {
  (options?: ChannelConfig): ChannelEntry;
  readonly spec: ChannelSpec<ZodObject>;
}

/** Declares a provider that is reached over HTTP and needs no options beyond the common ones. */
export function httpChannel(
  spec: HttpProvider & Omit<ChannelSpec<ZodObject>, 'options' | 'setup'>,
): PlainChannelKind {
  const { name, needsKey = true, models, discover, catalogue, prices, routingFields } = spec;
  const kind = defineChannel({
    name,
    needsKey,
    ...(models === undefined ? {} : { models }),
    ...(discover === undefined ? {} : { discover }),
    ...(catalogue === undefined ? {} : { catalogue }),
    ...(prices === undefined ? {} : { prices }),
    ...(routingFields === undefined ? {} : { routingFields }),
    setup(options, tools) {
      const parts = overHttp(options, tools, spec);
      return spec.beside?.(parts, options, tools) ?? parts;
    },
  });
  return plainKind(kind);
}

/** Returns a channel kind of which no options of its own are known, so that a misspelt one is red in the editor. */
export function plainKind(kind: ChannelKind): PlainChannelKind {
  return Object.assign((options?: ChannelConfig) => kind({ ...options }), { spec: kind.spec });
}

/** Sends requests to `place` with the channel's address and keys. For kinds with options of their own. */
export function overHttp(options: ChannelOptions, tools: ChannelTools, provider: HttpProvider): ChannelParts {
  const base = new URL(options.baseUrl ?? provider.baseUrl);
  // Parsing an address anew costs more than all else here, and few requests need it.
  const plain = base.search === '' ? base.href.replace(/\/+$/, '') : undefined;
  const { keys } = tools;
  // Whole and streamed, made once for each key: most requests bring no headers of their own.
  const ready = (keys.length > 0 ? keys : [undefined]).map((key) => {
    const credential = provider.headers(key);
    const make = (stream: boolean, own: UpstreamRequest['headers']): Readonly<Record<string, string>> => ({
      ...ordinaryHeaders({ stream }),
      ...provider.defaults,
      ...own,
      ...credential,
    });
    return { make, whole: make(false, {}), stream: make(true, {}) };
  });
  const listHeaders = {
    accept: 'application/json',
    'accept-encoding': 'identity',
    'user-agent': userAgent,
    ...provider.defaults,
    ...provider.headers(keys[0]),
  };
  const parts: ChannelParts = {
    speaks: provider.speaks,
    ...(provider.codecs === undefined ? {} : { codecs: provider.codecs }),
    ...(provider.keeps === undefined ? {} : { keeps: provider.keeps }),
    ...(provider.batchShare === undefined ? {} : { batchShare: provider.batchShare }),
    ...(provider.traits === undefined ? {} : { traits: provider.traits }),
    ...(provider.thinking === undefined ? {} : { thinking: provider.thinking }),
    ...(provider.modelList === undefined
      ? {}
      : {
          listModels: () =>
            readModelList(
              tools.http,
              listAddress(base, provider.modelList ?? ''),
              listHeaders,
              provider.listedPrices,
            ),
        }),
    ...(provider.listedPrices === undefined ? {} : { listsPrices: true }),
    ...(provider.statedCost === undefined ? {} : { statedCost: provider.statedCost }),
    ...(provider.speaks.realtime === undefined
      ? {}
      : { connect: overSockets({ base, headers: (key) => provider.headers(key) }, tools) }),
    open(call, request) {
      const headers = ready[call.target?.key.index ?? 0];
      const common = request.stream ? headers?.stream : headers?.whole;
      const { method = 'POST', service, upload } = request;
      const isPlain = isEmpty(request.query) && service === undefined;
      return tools.http.send(call, {
        url: plain !== undefined && isPlain ? plain + request.path : address(base, request),
        method,
        headers: (isEmpty(request.headers) ? common : headers?.make(request.stream, request.headers)) ?? {},
        ...(upload === undefined ? {} : { upload }),
        ...(method === 'POST' || method === 'PATCH'
          ? { body: provider.fields === undefined ? request.body : respell(request.body, provider.fields) }
          : {}),
      });
    },
  };
  const { batches } = provider;
  if (batches === undefined) return parts;
  const words = typeof batches === 'function' ? batches(tools) : batches;
  return { ...parts, open: withBatchDialect(parts.open, words) };
}

/** Returns the traits of every pattern that fits a model, later ones over earlier ones: write the general rule first. */
export function traitsByModel(table: Readonly<Record<string, ModelTraits>>): (model: string) => ModelTraits {
  const rows = Object.entries(table).map(([pattern, traits]) => ({ patterns: [pattern], traits }));
  return (model) => {
    const all: ModelTraits = {};
    for (const { patterns, traits } of rows) if (matchesName(patterns, model)) Object.assign(all, traits);
    return all;
  };
}

/** Returns the header `Authorization: Bearer`, the most common way to send a key. */
export function bearer(key: string | undefined): Readonly<Record<string, string>> {
  return key === undefined ? {} : { authorization: `Bearer ${key}` };
}

/** Returns the header `x-api-key`, in which Anthropic's clients send a key. */
export function apiKey(key: string | undefined): Readonly<Record<string, string>> {
  return key === undefined ? {} : { 'x-api-key': key };
}

const userAgent = `sluice/${version}`;

/** Returns the headers of every request. Compression is declined: it would hold events back until a block of them is full. */
export function ordinaryHeaders({
  stream,
}: Pick<UpstreamRequest, 'stream'>): Readonly<Record<string, string>> {
  return {
    'content-type': 'application/json',
    accept: stream ? 'text/event-stream' : 'application/json',
    'accept-encoding': 'identity',
    'user-agent': userAgent,
  };
}

function listAddress(base: URL, modelList: string): string {
  const url = new URL(modelList, 'http://path');
  return address(base, { path: url.pathname, query: Object.fromEntries(url.searchParams) });
}

function isEmpty(object: object): boolean {
  for (const name in object) if (Object.hasOwn(object, name)) return false;
  return true;
}

function address(base: URL, request: Pick<UpstreamRequest, 'path' | 'query' | 'service'>): string {
  const url = new URL(base);
  const root = base.pathname.replace(/\/+$/, '');
  // The same place of a service beside the API: https://host/upload/v1beta/files.
  const there = request.service === undefined ? root : root.replace(/(?=\/[^/]*$)/, `/${request.service}`);
  url.pathname = there + request.path;
  for (const [name, value] of Object.entries(request.query)) url.searchParams.set(name, value);
  return url.href;
}

/** Renames or removes fields of a body. Most bodies have none of the fields, and their bytes stay unchanged. */
function respell(
  body: UpstreamRequest['body'],
  fields: Readonly<Record<string, string | null>>,
): UpstreamRequest['body'] {
  if (typeof body !== 'string' && !Buffer.isBuffer(body)) {
    return body.flatMap((part) => {
      const there = Object.hasOwn(fields, part.name) ? fields[part.name] : part.name;
      return there === null || there === undefined ? [] : [{ ...part, name: there }];
    });
  }
  if (!Object.keys(fields).some((field) => body.includes(`"${field}"`))) return body;
  const parsed = parseObject(body.toString());
  if (parsed === undefined) return body;
  const spelled: { [field: string]: JsonObject[string] } = {};
  for (const [field, value] of Object.entries(parsed)) {
    const there = Object.hasOwn(fields, field) ? fields[field] : field;
    if (there !== null && there !== undefined) spelled[there] = value;
  }
  return JSON.stringify(spelled);
}

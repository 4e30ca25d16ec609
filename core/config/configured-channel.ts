/**
 * Builds a channel from its entry in the config: checks options, opens connections, and combines models, traits, prices and authorization.
 */
import { createHash } from 'node:crypto';
import { authorizationOf } from './channel-authorization.ts';
import { bodyEditor } from '../upstream/body-edits.ts';
import { optionProblems, optionsSchema, optionWarnings } from './channel-options.ts';
import type { Channel } from '../sdk/call.ts';
import type { SystemPrompt } from '../sdk/channel.ts';
import { withTrueHeaders } from '../sdk/exact-bytes.ts';
import { sentences } from './config.ts';
import { type Settings } from '../settings/index.ts';
import type { ChannelEntry, ChannelOptions, ChannelParts, ChannelTools } from '../sdk/define.ts';
import { channelKeys } from './channel-keys.ts';
import type { Format } from '../sdk/format.ts';
import { createGuardedStream } from '../upstream/guarded/stream.ts';
import { forwardsTo } from './client-credentials.ts';
import { createHttpClient } from '../upstream/send.ts';
import { createUpstreamSockets } from '../upstream/sockets.ts';
import type { Log } from '../log.ts';
import { refusedRequest, type AddressRules } from '../upstream/addresses/index.ts';
import { hideSecretMembers, hideSecretsIn } from '../settings/secret.ts';
import { modelNames } from '../routing/model-names.ts';
import { isPattern, listingOf, namesOf } from './channel-listing.ts';
import { traitsOf } from './channel-traits.ts';
import { baseModelWarnings, knownModelOf, readModels, type ChannelModels } from './channel-models.ts';
import { foldName } from '../sdk/member-names.ts';
import { KnownModels } from '../models/catalogue.ts';
import type { DiscoveryOptions, ModelDiscovery } from '../routing/model-discovery.ts';
import { servicePricesOf } from '../models/services.ts';
import { matchesModel } from '../sdk/allowed-models.ts';

/** Inputs of {@link makeChannel} besides the entry. */
export interface ChannelBuildOptions {
  readonly settings: Settings;
  /** File, place and name of the entry, for sentences about it. */
  readonly where: string;
  /** Take the sentences: what must not be, and what should not. */
  readonly problems: string[];
  readonly warnings: string[];
  readonly log: Log;
  readonly format: (name: string) => Format | undefined;
  /** Creates the discovery of the models that a provider lists. */
  readonly discovery: (
    cacheKey: string,
    listModels: DiscoveryOptions['listModels'],
    log: Log,
  ) => ModelDiscovery | undefined;
  readonly onClose: (job: () => void | Promise<void>) => void;
}

/** Returns a channel of the config, checked and set up; undefined when something is wrong with it, which is added to `problems`. */
export function makeChannel(entry: ChannelEntry, buildOptions: ChannelBuildOptions): Channel | undefined {
  const { settings, where, problems, warnings, log, format, onClose } = buildOptions;
  const { spec } = entry;
  const schema = optionsSchema(entry);
  // Before the options are validated.
  hideSecretsIn(schema, entry.options);
  hideSecretMembers(entry.options.headers?.set);
  hideSecretMembers(entry.options.body?.set);
  const parsed = schema.safeParse(entry.options);
  if (!parsed.success) {
    problems.push(...sentences(parsed.error, where));
    return undefined;
  }
  const options = parsed.data as ChannelOptions & Record<string, unknown>;
  warnings.push(...optionWarnings(options).map((warning) => `${where}: ${warning}`));
  const wrong = optionProblems(options);
  if (wrong.length > 0) {
    problems.push(...wrong.map((problem) => `${where}: ${problem}`));
    return undefined;
  }
  const keys = keysOf(options);
  const wanted = options.models ?? spec.models;
  const authorization = authorizationOf(options, wanted, settings.timeouts);
  if (authorization.problem !== undefined) {
    problems.push(`${where}: ${authorization.problem}`);
    return undefined;
  }
  if (spec.needsKey !== false && authorization.needsKey && keys.length === 0) {
    problems.push(
      `${where}: option "key" is empty. Set the variable that it is read from, or remove the channel.`,
    );
    return undefined;
  }
  if (wanted === undefined) {
    problems.push(
      `${where}: option "models" is missing. List the models that this channel serves: models: ['…'].`,
    );
    return undefined;
  }
  const servesAll = wanted === 'discover';
  const models = readModels(servesAll ? [] : wanted);
  const { http, sockets } = connectionsOf(options, settings, onClose);
  const channelLog = log.child({ channel: options.id ?? spec.name });
  let parts: ChannelParts;
  try {
    const download = createGuardedStream(settings.fetch, options.timeouts?.idle ?? settings.timeouts.idle);
    const own: ChannelTools = { log: channelLog, keys, http, sockets, download, format, onClose };
    const given = authorization.options as Parameters<typeof spec.setup>[0];
    parts = authorization.parts(spec.setup(given, authorization.tools(own)));
  } catch (error) {
    problems.push(`${where}: setup failed: ${error instanceof Error ? error.message : String(error)}`);
    return undefined;
  }
  const known = new KnownModels(parts.catalogue ?? spec.catalogue ?? []);
  warnings.push(...baseModelWarnings(known, models).map((warning) => `${where}: ${warning}`));
  const { isForwarding } = authorization;
  const isDiscoveryRequired = servesAll || options.discover === true;
  const { listModels } = parts;
  if (isDiscoveryRequired && listModels === undefined) {
    problems.push(
      `${where}: this kind of channel cannot list its models. List them in the config: models: ['…'].`,
    );
    return undefined;
  }
  const fills = (options.discover ?? spec.discover ?? false) && namesOf(models.names).some(isPattern);
  const isListed = parts.listsPrices === true && options.discover !== false;
  const discovery =
    listModels !== undefined && !isForwarding && (servesAll || fills || isListed)
      ? buildOptions.discovery(cacheKeyOf(spec.name, options, keys), listModels, channelLog)
      : undefined;
  return channelOf(spec, { options, models, known, servesAll, keys, parts, discovery, isForwarding });
}

/** Opens the connections of a channel, which are made when calls need them. */
function connectionsOf(
  options: ChannelOptions,
  settings: Settings,
  onClose: ChannelBuildOptions['onClose'],
): Pick<ChannelTools, 'http' | 'sockets'> {
  const http = createHttpClient({
    connectTimeout: options.timeouts?.connect ?? settings.timeouts.connect,
    idleTimeout: options.timeouts?.idle ?? settings.timeouts.idle,
    headers: options.headers,
    proxy: options.proxy,
    tls: options.tls,
  });
  onClose(() => http.close());
  const sockets = createUpstreamSockets({
    ...settings.realtime,
    connectTimeout: options.timeouts?.connect ?? settings.timeouts.connect,
    headers: options.headers,
    proxy: options.proxy,
    tls: options.tls,
  });
  onClose(() => sockets.close());
  return { http, sockets };
}

/** Returns the cache key of a list of models: another address or key may return another list. */
function cacheKeyOf(
  kind: string,
  { id = kind, baseUrl = '' }: ChannelOptions,
  keys: readonly string[],
): string {
  return createHash('sha256')
    .update(JSON.stringify([kind, id, baseUrl, keys[0]]))
    .digest('hex')
    .slice(0, 32);
}

/** Returns the keys of an entry, each once. */
function keysOf({ key, keys }: ChannelOptions): readonly string[] {
  const all = [key, ...(keys ?? [])].map((one) => one?.trim());
  return [...new Set(all.filter((one) => one !== undefined && one !== ''))] as string[];
}

interface ChannelMembers {
  readonly options: ChannelOptions;
  readonly models: ChannelModels;
  readonly known: KnownModels;
  readonly keys: readonly string[];
  readonly parts: ChannelParts;
  /** Whatever the provider lists, and nothing else. */
  readonly servesAll: boolean;
  readonly discovery: ModelDiscovery | undefined;
  /** Its requests carry the credentials of clients. */
  readonly isForwarding: boolean;
}

function channelOf(
  { name: kind, prices = {}, routingFields: chosenBy = [] }: ChannelEntry['spec'],
  { options, models, known, servesAll, keys, parts, discovery, isForwarding }: ChannelMembers,
): Channel {
  const routingFields = new Set([...chosenBy, ...(options.routingFields ?? [])].map(foldName));
  const ownPrices = Object.entries(prices).map(([name, row]) => ({ patterns: [name], name, row }));
  const { names } = models;
  const knownOf = knownModelOf(known, models);
  const nameOf = modelNames(names);
  const listed = listingOf({ known, models, parts, servesAll, discovery });
  const edited = bodyEditor(options.body);
  const systemPrompt = systemPromptOf(options);
  const { firstToken, attempt } = options.timeouts ?? {};
  const rules: AddressRules = {
    ...(isForwarding ? { forwards: forwardsTo(kind, options) } : {}),
    ...(options.mayRead === undefined ? {} : { mayRead: options.mayRead }),
    ...(options.mayWrite === undefined ? {} : { mayWrite: options.mayWrite }),
  };
  return {
    id: options.id ?? kind,
    kind,
    models: namesOf(names),
    priority: options.priority ?? 0,
    weight: options.weight ?? 1,
    keys: channelKeys(keys, parts.regions),
    ...(systemPrompt === undefined ? {} : { systemPrompt }),
    ...(firstToken === undefined ? {} : { firstTokenTimeout: firstToken }),
    ...(attempt === undefined ? {} : { attemptTimeout: attempt }),
    ...(routingFields.size === 0 ? {} : { routingFields }),
    ...(options.learn === false ? { learns: false } : {}),
    ...rules,
    codecs: parts.codecs ?? {},
    speaks: parts.speaks,
    ...(parts.keeps === undefined ? {} : { keeps: parts.keeps }),
    ...(parts.batchShare === undefined ? {} : { batchShare: parts.batchShare }),
    ...(parts.batchModel === undefined ? {} : { batchModel: parts.batchModel }),
    ...(parts.statedCost === undefined ? {} : { statedCost: parts.statedCost }),
    ...(parts.listModels === undefined || isForwarding ? {} : { listModels: parts.listModels }),
    upstreamModel: (model) =>
      nameOf(model) ?? (servesAll && discovery?.names?.has(model) === true ? model : undefined),
    listed,
    ...(discovery === undefined ? {} : { pricesAsOf: () => discovery.prices }),
    priceOf(upstreamModel) {
      const { name = upstreamModel, model } = knownOf(upstreamModel) ?? {};
      const catalogued = model?.price && { name, source: `list of ${known.date}`, row: model.price };
      // The model that the operator names has precedence over assumptions of the kind, such as that a self-hosted server is free.
      if (catalogued !== undefined && models.baseModel(upstreamModel) !== undefined) return catalogued;
      const own = ownPrices.find(({ patterns }) => matchesModel(patterns, upstreamModel));
      if (own !== undefined) return { name: own.name, source: `channel kind ${kind}`, row: own.row };
      return discovery?.priceOf(upstreamModel) ?? catalogued;
    },
    servicePrices: (upstreamModel) => servicePricesOf(kind, models.baseModel(upstreamModel) ?? upstreamModel),
    known: (upstreamModel) => knownOf(upstreamModel)?.model,
    traits: traitsOf(kind, { options, models, known, parts }),
    async open(call, request) {
      const refused = refusedRequest(call, request, rules);
      if (refused !== undefined) throw refused;
      // Edits of operators apply only to calls of models.
      const sent = edited === undefined || request.operation === 'state' ? request : edited(request);
      return withTrueHeaders(await parts.open(call, sent));
    },
    ...(parts.events === undefined ? {} : { events: eventsOf(parts.events, edited, rules) }),
    ...(parts.connect === undefined
      ? {}
      : { connect: (call, request) => parts.connect?.(call, request) ?? Promise.reject(new Error('gone')) }),
    ...(parts.watch === undefined ? {} : { watch: parts.watch }),
    close: () => Promise.resolve(),
  };
}

/** Returns the function for the events of a channel, with the same edits and checks as `open`. */
function eventsOf(
  events: NonNullable<ChannelParts['events']>,
  edited: ReturnType<typeof bodyEditor>,
  rules: AddressRules,
): NonNullable<Channel['events']> {
  return (call, request) => {
    const refused = refusedRequest(call, request, rules);
    if (refused !== undefined) throw refused;
    return events(call, edited === undefined ? request : edited(request));
  };
}

function systemPromptOf({ systemPrompt }: ChannelOptions): SystemPrompt | undefined {
  if (systemPrompt === undefined) return undefined;
  if (typeof systemPrompt === 'string') return { text: systemPrompt, place: 'before' };
  return { text: systemPrompt.text, place: systemPrompt.place ?? 'before' };
}

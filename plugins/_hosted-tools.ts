/**
 * Tables of the tools and request members that cost more than the tokens of a call: services, other models, service tiers. Look-ups by type and by
 * name.
 */
import { foldName, isObject, type JsonValue } from 'sluice';

/**
 * Cost of a tool or a member of a request besides the tokens of the call:
 * - `free`: none, because the client runs the tool or its tokens are part of the reported usage.
 * - `service`: a price for each use.
 * - `model`: another model runs. The request names it, or the provider chooses it.
 * - `tier`: other prices for the tokens of the call, by the name of a service tier.
 * - `unbounded`: neither its price nor its number of uses is known before the call.
 */
export type PaidKind = 'free' | 'service' | 'model' | 'tier' | 'unbounded';

/** Kind of hosted tool. The first matching row applies. */
export interface ToolRow {
  /** Matches the `type` of a tool, or the member that names it (`googleSearch`), without underscores and dates. */
  readonly type: RegExp;
  readonly kind: PaidKind;
  /** Name of the service in price tables. */
  readonly service?: string;
}

/**
 * Hosted tools of all formats. A tool that no row matches is `unbounded`. Source: the types of the official SDKs, to which a test compares the
 * rows. Tools with the prefix of a gateway (`vendor:advisor`) may run any model that it has.
 */
export const toolRows: readonly ToolRow[] = [
  { type: /^(?:function|custom|functionDeclarations|toolSpec|cachePoint)$/i, kind: 'free' },
  // The client runs these, and the call ends at each use.
  {
    type: /^(?:bash|textEditor|memory|computer|computerUse(?:Preview)?|computerToolset|browserToolset)$/i,
    kind: 'free',
  },
  { type: /^(?:localShell|applyPatch)$/i, kind: 'free' },
  // These types select among the tools of the request.
  {
    type: /^(?:toolSearch|toolSearchTool(?:bm25|regex)|toolReference|programmaticToolCalling|namespace)$/i,
    kind: 'free',
  },
  // The servers are the client's; what they return is counted as tokens.
  { type: /^(?:mcp|mcpToolset|mcpServers)$/i, kind: 'free' },
  // Tokens of fetched pages are all that is charged.
  { type: /^(?:webFetch|urlContext|[a-z]+:datetime)$/i, kind: 'free' },
  {
    type: /^(?:webSearch|webSearchPreview|googleSearch|googleSearchRetrieval)$/i,
    kind: 'service',
    service: 'web-search',
  },
  { type: /^xSearch$/i, kind: 'service', service: 'x-search' },
  { type: /^googleMaps$/i, kind: 'service', service: 'maps' },
  { type: /^fileSearch$/i, kind: 'service', service: 'file-search' },
  { type: /^(?:codeInterpreter|codeExecution|shell)$/i, kind: 'service', service: 'code-container' },
  { type: /^imageGeneration$/i, kind: 'service', service: 'image-generation' },
  // Searches of clouds and other vendors, whose prices depend on contracts.
  { type: /^(?:retrieval|enterpriseWebSearch|exaAiSearch|parallelAiSearch)$/i, kind: 'unbounded' },
  { type: /^advisor$/i, kind: 'model' },
  { type: /^[a-z]+:/i, kind: 'model' },
];

/** Returns the row of a tool by its type or the member that names it; undefined for a tool that is not known. */
export function toolRowOf(type: string): ToolRow | undefined {
  const known = knownTypes.get(type);
  if (known !== undefined) return known === 'unknown' ? undefined : known;
  const plain = foldName(type)
    .replace(/(?:_\d+)+$/, '')
    .replaceAll('_', '');
  const found = toolRows.find((row) => row.type.test(plain));
  if (knownTypes.size < maxTypes && type.length < 100) knownTypes.set(type, found ?? 'unknown');
  return found;
}

/** Rows of types that were looked up: with twenty tools in a call, trying each row took a third of the time of the whole search (2026-11-24). */
const knownTypes = new Map<string, ToolRow | 'unknown'>();
const maxTypes = 1000;

/** A member of a request, at any depth, by which a provider runs another model or charges more. */
export interface MemberRow {
  /** Folded name of the member. */
  readonly member: string;
  readonly kind: PaidKind;
  readonly service?: string;
  /** False for a value that changes nothing. Default: any value that {@link isGiven}. */
  readonly when?: (value: JsonValue) => boolean;
  /** True where a text as value is the name of a model. Default: false, as in `fallbacks: 'default'`. */
  readonly isName?: boolean;
}

/** Returns the word that a member chooses by: its text, or the text of an object such as `{type: 'priority'}`. */
export function tierIn(value: JsonValue): string {
  const word = isObject(value) ? (value['type'] ?? value['latency']) : value;
  return String(word)
    .toLowerCase()
    .replace(/^service_tier_/, '');
}

const isOneOf =
  (...words: readonly string[]) =>
  (value: JsonValue): boolean =>
    words.includes(tierIn(value));

/** Values of service tiers that cost no more than calls without a tier. */
const plainTiers = new Set('auto default standard standard_only on_demand flex scale unspecified'.split(' '));

const isTier = (value: JsonValue): boolean => value !== null && !plainTiers.has(tierIn(value));

const namesModel = (value: JsonValue): boolean => isObject(value) && namedIn(value).length > 0;

const isNameOrList = (value: JsonValue): boolean =>
  typeof value === 'string' || (Array.isArray(value) && value.every((one) => typeof one === 'string'));

/** Members of bodies. Names of one word that other parts of requests have too say which of their values they mean. */
export const memberRows: readonly MemberRow[] = [
  // A list of models, or "default".
  { member: 'fallbacks', kind: 'model' },
  // Models that are tried in order: OpenRouter, Perplexity and gateways behind other kinds of channels.
  { member: 'models', kind: 'model', when: isNameOrList, isName: true },
  // Moderation costs nothing.
  { member: 'moderation', kind: 'free', when: namesModel },
  // The tokens of the transcription are charged with those of the session.
  { member: 'transcription', kind: 'free', when: namesModel },
  { member: 'input_audio_transcription', kind: 'free', when: namesModel },
  // The author of vector images, beside the model that the request is for.
  { member: 'svg', kind: 'model', when: namesModel },
  { member: 'routingconfig', kind: 'model' },
  { member: 'routing_config', kind: 'model' },
  { member: 'modelselectionconfig', kind: 'model' },
  { member: 'model_selection_config', kind: 'model' },
  { member: 'web_search_options', kind: 'service', service: 'web-search' },
  { member: 'search_parameters', kind: 'unbounded' },
  { member: 'search_settings', kind: 'unbounded' },
  { member: 'compound_custom', kind: 'unbounded' },
  { member: 'enable_search', kind: 'unbounded' },
  { member: 'plugins', kind: 'unbounded' },
  // Filters with a price for each text. https://aws.amazon.com/bedrock/pricing/, https://cloud.google.com/security/products/model-armor#pricing
  { member: 'guardrailconfig', kind: 'unbounded' },
  { member: 'modelarmorconfig', kind: 'unbounded' },
  { member: 'model_armor_config', kind: 'unbounded' },
  // Containers with more than a gigabyte have other prices.
  { member: 'memory_limit', kind: 'unbounded', when: isLarge },
  // Other prices for the same tokens.
  { member: 'speed', kind: 'tier', when: isOneOf('fast') },
  { member: 'service_tier', kind: 'tier', when: isTier },
  { member: 'servicetier', kind: 'tier', when: isTier },
  { member: 'performanceconfig', kind: 'unbounded', when: isOneOf('optimized') },
];

const rowsByMember: ReadonlyMap<string, MemberRow> = new Map(memberRows.map((row) => [row.member, row]));

/** A member by which a provider runs a model beside that of the call, whatever it is called: `safety_model`. */
const furtherModel: MemberRow = { member: '*_model', kind: 'model', when: isNameOrList, isName: true };

/** Returns the row of a member by its folded name; undefined for most. */
export function memberRowOf(folded: string): MemberRow | undefined {
  return rowsByMember.get(folded) ?? (isFurtherModel(folded) ? furtherModel : undefined);
}

function isFurtherModel(folded: string): boolean {
  return (folded.endsWith('_model') || folded.endsWith('_models')) && !namesNoModel.test(folded);
}

/** Folded members that hold names of models inside of a paid member: `model`, `modelName`, `analysis_models`. */
const holdsModels = /models?(?:_?name|_?id)?s?$/;
/** Lists of models that are not to run. */
const namesNoModel = /^(?:excluded|ignored)_?models$/;

/** Returns the names of models in a value, at any depth. A list of texts is a list of names; a text is one where `isName` is true. */
export function namedIn(
  value: JsonValue,
  { isName: isTextName = false }: Pick<MemberRow, 'isName'> = {},
): readonly string[] {
  const names = new Set<string>();
  const rest: (readonly [value: JsonValue, isName: boolean])[] = [
    [value, isTextName || Array.isArray(value)],
  ];
  for (let next = rest.pop(); next !== undefined; next = rest.pop()) {
    const [inner, isName] = next;
    if (typeof inner === 'string') {
      if (isName) names.add(inner);
    } else if (Array.isArray(inner))
      for (const one of inner as readonly JsonValue[]) rest.push([one, isName]);
    else if (isObject(inner))
      for (const name in inner) {
        const member = inner[name];
        const folded = foldName(name);
        if (member === undefined || namesNoModel.test(folded)) continue;
        rest.push([member, holdsModels.test(folded)]);
      }
  }
  return [...names];
}

/** Returns true for a memory limit of more than a gigabyte. */
export function isLarge(memory: JsonValue | undefined): boolean {
  return memory !== undefined && memory !== null && memory !== '1g';
}

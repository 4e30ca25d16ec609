import { isObject, type JsonObject, type JsonValue } from '../model/json.ts';
import { GatewayError } from '../sdk/errors.ts';
import { foldedName } from '../sdk/member-names.ts';

/**
 * Cost of a tool or a member of a request besides the tokens of the call:
 * - `free`: none, because the client runs the tool or its tokens are part of the reported usage.
 * - `service`: a price for each use.
 * - `model`: another model runs. The request names it, or the provider chooses it.
 * - `unbounded`: neither its price nor its number of uses is known before the call.
 */
export type PaidKind = 'free' | 'service' | 'model' | 'unbounded';

/** One kind of hosted tool. The first row that fits a tool decides. */
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
  // They choose among tools of the request.
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
  const plain = foldedName(type)
    .replace(/(?:_\d+)+$/, '')
    .replaceAll('_', '');
  return toolRows.find((row) => row.type.test(plain));
}

/** A member of a request, at any depth, by which a provider runs another model or charges more. */
export interface MemberRow {
  /** Its folded name. */
  readonly member: string;
  readonly kind: PaidKind;
  readonly service?: string;
  /** False for a value that changes nothing. Default: any value that {@link isGiven}. */
  readonly when?: (value: JsonValue) => boolean;
}

const isOneOf =
  (...words: readonly string[]) =>
  (value: JsonValue): boolean =>
    words.includes(String(isObject(value) ? (value['type'] ?? value['latency']) : value).toLowerCase());

const namesModel = (value: JsonValue): boolean => isObject(value) && namedIn(value).length > 0;

/** Members of bodies. Names of one word that other parts of requests have too say which of their values they mean. */
export const memberRows: readonly MemberRow[] = [
  // A list of models, or "default".
  { member: 'fallbacks', kind: 'model' },
  // Moderation costs nothing.
  { member: 'moderation', kind: 'free', when: namesModel },
  // Its tokens are charged with those of the session.
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
  // Containers with more than a gigabyte have other prices.
  { member: 'memory_limit', kind: 'unbounded', when: isLarge },
  // Other prices for the same tokens.
  { member: 'speed', kind: 'unbounded', when: isOneOf('fast') },
  { member: 'service_tier', kind: 'unbounded', when: isOneOf('priority', 'fast') },
  { member: 'servicetier', kind: 'unbounded', when: isOneOf('priority', 'service_tier_priority') },
  { member: 'performanceconfig', kind: 'unbounded', when: isOneOf('optimized') },
];

/** Members in which nothing asks for a tool or a model: arguments, schemas, results, and choices among the tools of the request. */
const ignored = new Set(
  (
    'metadata parameters input_schema inputschema schema json_schema jsonschema arguments annotations citations results outputs args ' +
    'functioncall functionresponse function_call function_response responseschema responsejsonschema response_schema ' +
    'tooluse toolresult tool_choice toolchoice allowed_tools json text image_url inlinedata inline_data'
  ).split(' '),
);

/** Types of blocks and items of the history, of which nothing is asked for again. */
const ofHistory = /(?:tool_use|_listing|_list_tools|_call|_call_output|tool_result)$/;

/** One member of a request that costs more than the tokens of the call, or names a model. */
export interface PaidMember {
  /** Path in the body. */
  readonly path: string;
  readonly kind: PaidKind;
  readonly service?: string;
  /** The models that it names. Empty where it names none. */
  readonly models: readonly string[];
  /** The maximum number of uses that the tool states. */
  readonly maxUses?: number;
}

/** Maximum number of such members in a request: each is checked, and a request has few. */
const maxMembers = 1000;

interface Step {
  readonly value: JsonValue;
  readonly path: string;
}

/**
 * Returns the members of a request that name another model or cost more than its tokens, at any depth, also in another letter case. What is
 * `free` and names no model is left out. Throws 400 for more than a thousand of them, because what is not looked at is not checked.
 */
export function paidMembers(body: JsonObject): readonly PaidMember[] {
  const found: PaidMember[] = [];
  const rest: Step[] = [{ value: body, path: '' }];
  for (let step = rest.pop(); step !== undefined; step = rest.pop()) {
    const { value, path } = step;
    if (Array.isArray(value))
      value.forEach((one: JsonValue, index) => {
        if (typeof one === 'object' && one !== null) rest.push({ value: one, path: `${path}[${index}]` });
      });
    else if (isObject(value)) visitObject(value, path, rest, found);
    if (found.length > maxMembers)
      throw new GatewayError(
        'invalid_value',
        `A request names at most ${maxMembers} further models, hosted tools and paid services.`,
      );
  }
  return found;
}

function visitObject(object: JsonObject, path: string, rest: Step[], found: PaidMember[]): void {
  const { type } = object;
  const isPast = typeof type === 'string' && ofHistory.test(type);
  for (const name in object) {
    const value = object[name];
    if (value === undefined || !isGiven(value)) continue;
    const folded = foldedName(name);
    const at = path === '' ? name : `${path}.${name}`;
    const row = rowsByMember.get(folded);
    if (row !== undefined && (row.when?.(value) ?? true)) {
      const models = namedIn(value);
      if (row.kind !== 'free' || models.length > 0)
        found.push({ path: at, kind: row.kind, models, ...named(row) });
      continue;
    }
    if (typeof value !== 'object' || ignored.has(folded) || (isPast && folded !== 'content')) continue;
    if (folded === 'tools' && Array.isArray(value)) visitTools(value, at, found);
    else if (folded === 'definition' && isObject(value)) visitTool(value, at, found);
    else rest.push({ value, path: at });
  }
}

const rowsByMember: ReadonlyMap<string, MemberRow> = new Map(memberRows.map((row) => [row.member, row]));

function visitTools(tools: readonly JsonValue[], path: string, found: PaidMember[]): void {
  const rest: Step[] = [{ value: tools, path }];
  for (let step = rest.pop(); step !== undefined; step = rest.pop()) {
    const { value, path: at } = step;
    if (Array.isArray(value))
      value.forEach((one: JsonValue, index) => rest.push({ value: one, path: `${at}[${index}]` }));
    else if (isObject(value)) {
      visitTool(value, at, found);
      for (const name in value) {
        const inner = value[name];
        if (foldedName(name) === 'tools' && inner !== undefined)
          rest.push({ value: inner, path: `${at}.${name}` });
      }
    }
  }
}

/** Members of a tool that say nothing of what it is. */
const descriptive = new Set(['name', 'description', 'cache_control', 'type']);

function visitTool(tool: JsonObject, path: string, found: PaidMember[]): void {
  const type = memberOf(tool, 'type');
  const uses: readonly (readonly [what: string, value: JsonObject])[] =
    typeof type === 'string'
      ? [[type, tool]]
      : Object.entries(tool).flatMap(([name, value]) =>
          isObject(value) || Array.isArray(value) ? [[name, isObject(value) ? value : {}] as const] : [],
        );
  for (const [what, value] of uses) {
    const folded = foldedName(what);
    if (typeof type !== 'string' && descriptive.has(folded)) continue;
    const known = toolRowOf(what);
    // A function of the client may have further members beside its name: {name, description, input_schema}.
    if (known === undefined && typeof type !== 'string' && typeof tool['name'] === 'string') continue;
    const row = known ?? unknownTool;
    if (row.kind === 'free' || isLocalShell(folded, value)) continue;
    const maxUses = memberOf(value, 'max_uses');
    found.push({
      path: typeof type === 'string' ? path : `${path}.${what}`,
      kind: isLargeContainer(value) ? 'unbounded' : row.kind,
      models: namedIn(value),
      ...named(row),
      ...(typeof maxUses === 'number' && maxUses >= 0 ? { maxUses } : {}),
    });
  }
}

/** True for a container with more memory than the one whose price is known. */
function isLargeContainer(value: JsonObject): boolean {
  const { container, environment } = value;
  return [value, container, environment].some(
    (one) => isObject(one) && isLarge(memberOf(one, 'memory_limit')),
  );
}

function isLarge(memory: JsonValue | undefined): boolean {
  return memory !== undefined && memory !== null && memory !== '1g';
}

const unknownTool: ToolRow = { type: /^/, kind: 'unbounded' };

function named({ service }: Pick<ToolRow, 'service'>): Pick<PaidMember, 'service'> {
  return service === undefined ? {} : { service };
}

/** True for a shell that the client runs. */
function isLocalShell(type: string, { environment }: JsonObject): boolean {
  return type === 'shell' && isObject(environment) && environment['type'] === 'local';
}

/** Folded members that hold the name of a model inside of a paid member. */
const modelNames = new Set(['model', 'models', 'modelname', 'model_name']);

/** Returns the names of models in a value, at any depth. A list of texts is a list of names. */
function namedIn(value: JsonValue): readonly string[] {
  const names: string[] = [];
  const rest: JsonValue[] = [value];
  for (let next = rest.pop(); next !== undefined; next = rest.pop()) {
    if (Array.isArray(next))
      for (const one of next as readonly JsonValue[]) {
        if (typeof one === 'string' && next === value) names.push(one);
        else rest.push(one);
      }
    else if (isObject(next))
      for (const name in next) {
        const member = next[name];
        if (member === undefined) continue;
        if (!modelNames.has(foldedName(name))) rest.push(member);
        else
          for (const one of Array.isArray(member) ? member : [member])
            if (typeof one === 'string') names.push(one);
      }
  }
  return [...new Set(names)];
}

/** Returns a member, also in another letter case. */
function memberOf(object: JsonObject, folded: string): JsonValue | undefined {
  if (Object.hasOwn(object, folded)) return object[folded];
  const name = Object.keys(object).find((one) => foldedName(one) === folded);
  return name === undefined ? undefined : object[name];
}

/** False for values by which a member is left out or switched off. */
function isGiven(value: JsonValue): boolean {
  return value !== null && value !== false && !(Array.isArray(value) && value.length === 0);
}

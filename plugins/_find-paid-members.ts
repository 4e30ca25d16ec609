/** Finds what a request uses besides the tokens of its model: hosted tools, other models, service tiers. */
import { foldName, GatewayError, isObject, type JsonObject, type JsonValue } from 'sluice';
import {
  isLarge,
  memberRowOf,
  namedIn,
  tierIn,
  toolRowOf,
  type MemberRow,
  type PaidKind,
  type ToolRow,
} from './_hosted-tools.ts';

/** Members that never request a tool or a model: arguments, schemas, results, and choices among the tools of the request. */
const ignored = new Set(
  (
    'metadata parameters input_schema inputschema schema json_schema jsonschema arguments annotations citations results outputs args ' +
    'functioncall functionresponse function_call function_response responseschema responsejsonschema response_schema ' +
    'tooluse toolresult tool_choice toolchoice allowed_tools json text image_url inlinedata inline_data'
  ).split(' '),
);

/** Types of blocks and items of the history, which are not requested again. Only skipped in lists; other objects are read whatever their type. */
const ofHistory = /(?:tool_use|_listing|_list_tools|_call|_call_output|tool_result)$/;

/** One member of a request that costs more than the tokens of the call, or names a model. */
export interface PaidMember {
  /** Path in the body. */
  readonly path: string;
  readonly kind: PaidKind;
  readonly service?: string;
  /** The models that it names. Empty where it names none. */
  readonly models: readonly string[];
  /** Requested service tier. */
  readonly tier?: string;
  /** The maximum number of uses that the tool states. */
  readonly maxUses?: number;
}

/** Maximum number of such members in a request: each is checked, and a request has few. */
const maxMembers = 1000;

/** Position of the walk: a value and its member name or index in the enclosing value. Paths are built only for members that are found. */
interface Step {
  readonly value: JsonValue;
  readonly name: string | number;
  readonly around: Step | undefined;
}

/**
 * Returns the members of a request that name another model or cost more than its tokens, at any depth, also in another letter case. What is
 * `free` and names no model is left out. Throws 400 for more than a thousand of them, because what is not looked at is not checked.
 */
export function paidMembers(body: JsonObject): readonly PaidMember[] {
  const known = knownMembers.get(body);
  if (known !== undefined) return known;
  const found = findMembers(body);
  knownMembers.set(body, found);
  return found;
}

/** Cached members by body, because several plugins need them for each call. */
const knownMembers = new WeakMap<JsonObject, readonly PaidMember[]>();

function findMembers(body: JsonObject): readonly PaidMember[] {
  const found: PaidMember[] = [];
  const rest: Step[] = [{ value: body, name: '', around: undefined }];
  for (let step = rest.pop(); step !== undefined; step = rest.pop()) {
    const { value } = step;
    if (Array.isArray(value)) {
      for (let index = 0; index < value.length; index += 1) {
        const one = value[index] as JsonValue;
        if (typeof one === 'object' && one !== null) rest.push({ value: one, name: index, around: step });
      }
    } else if (isObject(value)) visitObject(value, step, rest, found);
    if (found.length > maxMembers)
      throw new GatewayError(
        'invalid_value',
        `A request names at most ${maxMembers} further models, hosted tools and paid services.`,
      );
  }
  return found;
}

function visitObject(object: JsonObject, step: Step, rest: Step[], found: PaidMember[]): void {
  const { type } = object;
  const isPast = typeof step.name === 'number' && typeof type === 'string' && ofHistory.test(type);
  for (const name in object) {
    const value = object[name];
    if (value === undefined || !isGiven(value)) continue;
    const inner = step.around === undefined ? objectOfField(name, value) : undefined;
    if (inner !== undefined) {
      visitObject(inner, step, rest, found);
      continue;
    }
    const { folded, row, isIgnored } = memberNamed(name);
    if (row !== undefined && (row.when?.(value) ?? true)) {
      const models = namedIn(value, row);
      if (row.kind !== 'free' || models.length > 0)
        found.push({
          path: pathOf(step, name),
          kind: row.kind,
          models,
          ...named(row),
          ...(row.kind === 'tier' ? { tier: tierIn(value) } : {}),
        });
      continue;
    }
    if (typeof value !== 'object' || isIgnored || (isPast && folded !== 'content')) continue;
    if (folded === 'tools' && Array.isArray(value)) visitTools(value, pathOf(step, name), found);
    else if (folded === 'definition' && isObject(value)) visitTool(value, pathOf(step, name), found);
    else rest.push({ value, name, around: step });
  }
}

/** Returns the client's path of a member: `messages[0].content[1].model`. */
function pathOf(step: Step, name: string): string {
  const outer = pathOfStep(step);
  return outer === '' ? name : `${outer}.${name}`;
}

function pathOfStep({ name, around }: Step): string {
  if (around === undefined) return '';
  return typeof name === 'number' ? `${pathOfStep(around)}[${name}]` : pathOf(around, name);
}

/** Facts about a member name that the walk needs. */
interface Member {
  readonly folded: string;
  readonly row: MemberRow | undefined;
  readonly isIgnored: boolean;
}

/** Number of names that are remembered, and the length of the longest of them: requests have the same few names in each of their messages. */
const mostKnown = 1000;
const longestName = 64;
const knownNames = new Map<string, Member>();

function memberNamed(name: string): Member {
  const known = knownNames.get(name);
  if (known !== undefined) return known;
  const folded = foldName(name);
  const member = { folded, row: memberRowOf(folded), isIgnored: ignored.has(folded) };
  if (knownNames.size < mostKnown && name.length <= longestName) knownNames.set(name, member);
  return member;
}

/** Returns the object that a field of a form stands for by its name, such as `svg[model]`; undefined for other names. */
function objectOfField(name: string, value: JsonValue): JsonObject | undefined {
  if (!name.endsWith(']')) return undefined;
  const [first = '', ...names] = name
    .slice(0, -1)
    .split(/\]?\[/)
    .filter((one) => one !== '');
  return names.length === 0
    ? undefined
    : { [first]: names.reduceRight<JsonValue>((inner, one) => ({ [one]: inner }), value) };
}

function visitTools(tools: readonly JsonValue[], path: string, found: PaidMember[]): void {
  const rest: { readonly value: JsonValue; readonly path: string }[] = [{ value: tools, path }];
  for (let step = rest.pop(); step !== undefined; step = rest.pop()) {
    const { value, path: at } = step;
    if (Array.isArray(value))
      value.forEach((one: JsonValue, index) => rest.push({ value: one, path: `${at}[${index}]` }));
    else if (isObject(value)) {
      visitTool(value, at, found);
      for (const name in value) {
        const inner = value[name];
        if (foldName(name) === 'tools' && inner !== undefined)
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
    const folded = foldName(what);
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

/** Returns true for a container with more memory than the one whose price is known. */
function isLargeContainer(value: JsonObject): boolean {
  const { container, environment } = value;
  return [value, container, environment].some(
    (one) => isObject(one) && isLarge(memberOf(one, 'memory_limit')),
  );
}

const unknownTool: ToolRow = { type: /^/, kind: 'unbounded' };

function named({ service }: Pick<ToolRow, 'service'>): Pick<PaidMember, 'service'> {
  return service === undefined ? {} : { service };
}

/** Returns true for a shell that the client runs. */
function isLocalShell(type: string, { environment }: JsonObject): boolean {
  return type === 'shell' && isObject(environment) && environment['type'] === 'local';
}

/** Returns a member, also in another letter case. */
function memberOf(object: JsonObject, folded: string): JsonValue | undefined {
  if (Object.hasOwn(object, folded)) return object[folded];
  const name = Object.keys(object).find((one) => foldName(one) === folded);
  return name === undefined ? undefined : object[name];
}

/** Returns false for values by which a member is left out or switched off. */
function isGiven(value: JsonValue): boolean {
  return value !== null && value !== false && !(Array.isArray(value) && value.length === 0);
}

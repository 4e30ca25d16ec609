/** Sets, removes and renames members of a JSON body, and keeps all other bytes unchanged. */
import type { JsonValue } from '../model/json.ts';
import { plainMember, type RefusedMember, type TakenMember } from '../model/refused-member.ts';
import { eachMember, Members } from './members.ts';

/**
 * Values of members at the top of a body, by their names. Undefined: the member is removed.
 *
 * @example
 * const edits: MemberEdits = { model: 'gpt-5-mini', user: undefined };
 */
export type MemberEdits = Readonly<Record<string, JsonValue | undefined>>;

/** Objects of requests that hold settings: a name without a path stands for the members of these too. */
const containers = ['generationConfig', 'inferenceConfig', 'additionalModelRequestFields'].map(plainMember);

/** Longest name of a member that is compared. */
const longestName = 64;

/** Members to remove at one level of a body, and objects in which to search. */
interface Level {
  readonly taken: Map<string, RefusedMember>;
  readonly below: Map<string, Level>;
  /** True when it depends on the names beside a member whether that is taken out. */
  looksBeside: boolean;
}

/** A body with other members than it had, and those that were taken out of it because they are refused. */
export interface RewrittenBody {
  readonly bytes: Buffer;
  readonly taken: readonly TakenMember[];
}

/**
 * Sets members at the top of a JSON body, or removes those given as undefined. Then removes or renames refused ones, at any depth. All other bytes
 * stay as they are, with numbers that JavaScript cannot hold and names that are given twice. Returns the same bytes where there is nothing to
 * change, and where the body is no JSON object.
 */
export function rewriteMembers(
  bytes: Buffer,
  edits: MemberEdits,
  refused: readonly RefusedMember[],
): RewrittenBody {
  const taken: TakenMember[] = [];
  return { bytes: rewrittenAt(bytes, levelsOf(refused), '', taken, edits), taken };
}

/**
 * Sets members at the top of a JSON body, or removes those given as undefined. All other bytes stay as they are, with numbers that
 * JavaScript cannot hold. Returns a form unchanged.
 *
 * @example
 * open: (call, request) => http.send(call, { url, headers, body: editMembers(request.body, { model: undefined, safe: true }) }),
 */
export function editMembers<Body>(body: Body, edits: MemberEdits): Body | Buffer {
  if (typeof body !== 'string' && !Buffer.isBuffer(body)) return body;
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  const edited = rewriteMembers(bytes, edits, []).bytes;
  return edited === bytes ? body : edited;
}

/**
 * Does the same as {@link editMembers} for the object that is the member `name` of a JSON object. Returns bytes without such a member unchanged.
 *
 * @example
 * const body = editMembersOf(bytes, 'metadata', { user: undefined });
 */
export function editMembersOf(bytes: Buffer, name: string, edits: MemberEdits): Buffer {
  let edited = bytes;
  eachMember(bytes, (member) => {
    if (member.name !== name) return;
    const inner = editMembers(bytes.subarray(member.value, member.end), edits);
    edited = Buffer.concat([bytes.subarray(0, member.value), inner, bytes.subarray(member.end)]);
  });
  return edited;
}

function levelsOf(wanted: readonly RefusedMember[]): Level {
  const root = newLevel();
  for (const member of wanted) {
    const names = member.path.split('.').map(plainMember);
    addMember(root, names, member);
    if (names.length === 1)
      for (const container of containers) addMember(root, [container, ...names], member);
  }
  return root;
}

function addMember(root: Level, names: readonly string[], member: RefusedMember): void {
  let level = root;
  for (const name of names.slice(0, -1)) {
    const below = level.below.get(name) ?? newLevel();
    level.below.set(name, below);
    level = below;
  }
  level.taken.set(names.at(-1) ?? '', member);
  if (member.as !== undefined || member.beside !== undefined) level.looksBeside = true;
}

function newLevel(): Level {
  return { taken: new Map(), below: new Map(), looksBeside: false };
}

const none: MemberEdits = {};

function rewrittenAt(
  bytes: Buffer,
  level: Level,
  path: string,
  taken: TakenMember[],
  edits: MemberEdits = none,
): Buffer {
  const names = level.looksBeside ? namesIn(bytes, edits) : noNames;
  const members = new Members(bytes);
  const found: TakenMember[] = [];
  /** Writes a member with the edits of its level. Calls `keep` where nothing in the member changes. */
  const writeMember = (name: string, value: () => Buffer, keep: () => void): void => {
    const spelled = path === '' ? name : `${path}.${name}`;
    const plain = name.length > longestName ? '' : plainMember(name);
    const refused = level.taken.get(plain);
    const below = level.below.get(plain);
    if (refused !== undefined && applies(refused, names)) {
      found.push({ ...refused, spelled });
      if (refused.as === undefined) members.skip();
      else members.put(nameOf(refused.as), value());
    } else if (below !== undefined) {
      const before = found.length;
      const inner = rewrittenAt(value(), below, spelled, found);
      if (found.length === before) keep();
      else members.put(nameOf(name), inner);
    } else keep();
  };
  for (const [name, value] of Object.entries(edits)) {
    if (value === undefined) continue;
    const written = Buffer.from(JSON.stringify(value));
    writeMember(
      name,
      () => written,
      () => members.put(nameOf(name), written),
    );
  }
  const isObject = eachMember(bytes, ({ name, start, value, end }) => {
    if (Object.hasOwn(edits, name)) members.skip();
    else
      writeMember(
        name,
        () => bytes.subarray(value, end),
        () => members.keep(start, end),
      );
  });
  if (!isObject || (found.length === 0 && Object.keys(edits).length === 0)) return bytes;
  for (const one of found) taken.push(one);
  return members.joined();
}

function nameOf(name: string): Buffer {
  return Buffer.from(`${JSON.stringify(name)}:`);
}

const noNames: ReadonlySet<string> = new Set();

/** Returns the names in an object with the edits made. */
function namesIn(bytes: Buffer, edits: MemberEdits): ReadonlySet<string> {
  const names = new Set<string>();
  for (const [name, value] of Object.entries(edits))
    if (value !== undefined) names.add(plainMember(name.slice(0, longestName)));
  eachMember(bytes, ({ name }) => {
    if (!Object.hasOwn(edits, name)) names.add(plainMember(name.slice(0, longestName)));
  });
  return names;
}

/** Returns true when the edit applies. A value is not moved to a name that already has a value. */
function applies({ as, beside }: RefusedMember, names: ReadonlySet<string>): boolean {
  if (as !== undefined && names.has(plainMember(as))) return false;
  return beside === undefined || names.has(plainMember(beside));
}

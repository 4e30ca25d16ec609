import { plainMember, type RefusedMember, type TakenMember } from '../../model/refused-member.ts';
import { eachMember, Members } from './edit-members.ts';

/** Objects of requests that hold settings: a name without a path stands for the members of these too. */
const containers = ['generationConfig', 'inferenceConfig', 'additionalModelRequestFields'].map(plainMember);

/** Longest name of a member that is compared. */
const longestName = 64;

/** What is looked for at one level of a body: members to take out, and the objects to look into. */
interface Level {
  readonly taken: Map<string, RefusedMember>;
  readonly below: Map<string, Level>;
  /** True when it depends on the names beside a member whether that is taken out. */
  looksBeside: boolean;
}

/**
 * Removes members from a JSON body, or renames them. All other bytes stay as they are. Returns the same bytes when none of the members stands
 * in the body, and when the body is no JSON object.
 */
export function takeMembers(
  bytes: Buffer,
  wanted: readonly RefusedMember[],
): { readonly bytes: Buffer; readonly taken: readonly TakenMember[] } {
  const taken: TakenMember[] = [];
  return { bytes: takeAt(bytes, levelsOf(wanted), '', taken), taken };
}

function levelsOf(wanted: readonly RefusedMember[]): Level {
  const root = newLevel();
  for (const member of wanted) {
    const names = member.path.split('.').map(plainMember);
    place(root, names, member);
    if (names.length === 1) for (const container of containers) place(root, [container, ...names], member);
  }
  return root;
}

function place(root: Level, names: readonly string[], member: RefusedMember): void {
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

function takeAt(bytes: Buffer, level: Level, path: string, taken: TakenMember[]): Buffer {
  const names = level.looksBeside ? namesIn(bytes) : none;
  const members = new Members(bytes);
  const found: TakenMember[] = [];
  const isObject = eachMember(bytes, ({ name, start, value, end }) => {
    const spelled = path === '' ? name : `${path}.${name}`;
    const plain = name.length > longestName ? '' : plainMember(name);
    const refused = level.taken.get(plain);
    const below = level.below.get(plain);
    if (refused !== undefined && applies(refused, names)) {
      found.push({ ...refused, spelled });
      if (refused.as === undefined) members.skip();
      else members.put(Buffer.from(`${JSON.stringify(refused.as)}:`), bytes.subarray(value, end));
    } else if (below !== undefined) {
      const before = found.length;
      const inner = takeAt(bytes.subarray(value, end), below, spelled, found);
      if (found.length === before) members.keep(start, end);
      else members.put(bytes.subarray(start, value), inner);
    } else members.keep(start, end);
  });
  if (!isObject || found.length === 0) return bytes;
  for (const one of found) taken.push(one);
  return members.joined();
}

const none: ReadonlySet<string> = new Set();

/** The names in an object. */
function namesIn(bytes: Buffer): ReadonlySet<string> {
  const names = new Set<string>();
  eachMember(bytes, ({ name }) => void names.add(plainMember(name.slice(0, longestName))));
  return names;
}

/** A value is not moved to a name that has a value already. */
function applies({ as, beside }: RefusedMember, names: ReadonlySet<string>): boolean {
  if (as !== undefined && names.has(plainMember(as))) return false;
  return beside === undefined || names.has(plainMember(beside));
}

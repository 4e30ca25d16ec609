/** Changes settings files of agents atomically and with a backup beside each, from which `sluice connect --undo` restores them. */
import { createHash, randomBytes } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { z } from 'zod';
import { parseObject } from '../../json/parse.ts';
import { isObject, type JsonValue } from '../../model/json.ts';
import type { FilePlan } from './agent.ts';
import { indexOfItem, type Edit, type Syntax } from './documents/document.ts';

/** One settings file, as it is and as it will be. */
export interface Change {
  readonly path: string;
  /** Undefined when the file does not exist. */
  readonly before: string | undefined;
  readonly after: string;
  readonly edits: readonly Edit[];
  /** Texts that the edits write. All other texts in the file belong to the user. */
  readonly own: ReadonlySet<string>;
}

/** Largest settings file that is read, in bytes. */
const maxBytes = 1024 * 1024;

/** Backup of a file: its text before the first change, and a hash that shows whether another program has changed it since. */
const backupSchema = z.object({
  existed: z.boolean(),
  before: z.string(),
  /** SHA-256 of the text that was written; empty when the file had been changed between two runs. */
  after: z.string(),
  edits: z.array(
    z.object({ path: z.array(z.string()), by: z.string().optional(), item: z.string().optional() }),
  ),
});
type Backup = z.output<typeof backupSchema>;

/** Returns the change that a plan makes. Throws an Error that names the file when it cannot be read or edited. */
export function changeOf({ path: named, syntax, edits: all }: FilePlan): Change {
  // Resolves a symbolic link, so that the link stays.
  const path = existsSync(named) ? realpathSync(named) : named;
  const before = readIfThere(path);
  try {
    const edits = all.filter(
      ({ isDefault = false, path: member }) => !isDefault || syntax.read(before ?? '', member) === undefined,
    );
    const own = new Set(edits.flatMap(({ value }) => textsIn(value)));
    return { path, before, after: syntax.apply(before ?? '', edits), edits, own };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(
      `${path} was not changed: ${why}. Repair the file, or move it away, and run the command again.`,
      {
        cause: error,
      },
    );
  }
}

/** Throws when a change would write a key into a file that other users can read. */
export function checkMode({ path, before, after }: Change, key: string | undefined): void {
  if (key === undefined || before === undefined || !after.includes(key) || process.platform === 'win32')
    return;
  const mode = statSync(path).mode & 0o777;
  if ((mode & 0o077) === 0) return;
  throw new Error(
    `Other users can read ${path} (mode ${mode.toString(8)}), so the key was not written to it. Run: chmod 600 ${path}\nOr let the agent read the key from an environment variable: --key-env NAME`,
  );
}

/** Writes a change atomically, and keeps a backup. Only the owner can read a new file. */
export function write(change: Change): void {
  const { path, before, after, edits } = change;
  const old = readBackup(path);
  const isKnown = old === undefined || old.after === hashOf(before ?? '');
  const backup: Backup = {
    existed: old?.existed ?? before !== undefined,
    before: old?.before ?? before ?? '',
    after: isKnown ? hashOf(after) : '',
    edits: [...(old?.edits ?? []), ...edits.map(withoutValue)],
  };
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  replace(backupPath(path), `${JSON.stringify(backup, undefined, 2)}\n`, 0o600);
  replace(path, after, before === undefined ? 0o600 : statSync(path).mode & 0o777);
}

/** Result of {@link undo} for one file. */
export type Undone = 'restored' | 'removed' | 'edited' | 'untouched';

/** Undoes the changes of a file. Restores the whole file, or only the changed members when another program has changed the file since. */
export function undo({ path: named, syntax }: FilePlan): Undone {
  const path = existsSync(named) ? realpathSync(named) : named;
  const backup = readBackup(path);
  if (backup === undefined) return 'untouched';
  let done: Undone;
  try {
    done = restored(path, backup, syntax);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(
      `${path} was not restored: ${why}. Repair the file and run the command again, or copy the old text from "before" in ${backupPath(path)}.`,
      { cause: error },
    );
  }
  rmSync(backupPath(path));
  return done;
}

function restored(path: string, backup: Backup, syntax: Syntax): Undone {
  const now = readIfThere(path);
  if (now === undefined) return 'untouched';
  const isOurs = backup.after === hashOf(now);
  if (isOurs && !backup.existed) {
    rmSync(path);
    return 'removed';
  }
  const mode = statSync(path).mode & 0o777;
  replace(path, isOurs ? backup.before : syntax.apply(now, backup.edits.map(inverse(backup, syntax))), mode);
  return isOurs ? 'restored' : 'edited';
}

/** Returns the edit that gives a member the value that it had before. */
function inverse({ before }: Backup, syntax: Syntax): (edit: Backup['edits'][number]) => Edit {
  return ({ path, by, item }) => {
    const old = syntax.read(before, path);
    if (by === undefined || item === undefined) return { path, ...(old === undefined ? {} : { value: old }) };
    const list = Array.isArray(old) ? old : [];
    const value = list[indexOfItem(list, { path, by, item })];
    return { path, by, item, ...(value === undefined ? {} : { value }) };
  };
}

/** Returns all texts in a value. */
function textsIn(value: JsonValue | undefined): readonly string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : [];
}

function withoutValue({ path, by, item, value }: Edit): Backup['edits'][number] {
  const named = isObject(value) ? value[by ?? ''] : item;
  return { path: [...path], ...(by === undefined ? {} : { by, item: String(named) }) };
}

function backupPath(path: string): string {
  return `${path}.sluice-backup`;
}

function readBackup(path: string): Backup | undefined {
  const text = readIfThere(backupPath(path));
  if (text === undefined) return undefined;
  const parsed = backupSchema.safeParse(parseObject(text));
  if (parsed.success) return parsed.data;
  throw new Error(
    `${backupPath(path)} is not a backup of "sluice connect". Move it away, and run the command again.`,
  );
}

function readIfThere(path: string): string | undefined {
  if (!existsSync(path)) return undefined;
  if (statSync(path).size > maxBytes) throw new Error(`${path} is larger than ${maxBytes} bytes.`);
  return readFileSync(path, 'utf8');
}

function replace(path: string, text: string, mode: number): void {
  const next = `${path}.${randomBytes(4).toString('hex')}.tmp`;
  writeFileSync(next, text, { mode: 0o600, flag: 'wx' });
  // Sets the mode again because the umask may have removed permissions that the old file had.
  chmodSync(next, mode);
  renameSync(next, path);
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

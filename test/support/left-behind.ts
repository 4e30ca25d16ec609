/** Ends what tests have started when the run itself is killed: gateways, databases and browsers would go on without it. */
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';

/** Time in milliseconds between two looks at what a run has started. */
const step = 1_000;

/**
 * Starts a process that notes what this one has started, and ends it when this one is gone. Returns what ends that process, at the end of a
 * run that ends by itself. Does nothing where there is no `/proc`.
 */
export function endWhatIsLeftBehind(): () => void {
  if (!existsSync('/proc/self/stat')) return () => {};
  const watcher = spawn(process.execPath, [import.meta.filename, String(process.pid)], {
    // A signal from the terminal reaches the whole group.
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  watcher.unref();
  return () => watcher.kill('SIGKILL');
}

interface Process {
  readonly pid: number;
  readonly parent: number;
  /** Start time in ticks since the start of the machine, because another process may get the same id later. */
  readonly started: string;
}

function running(): readonly Process[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        // The name, in parentheses, may have spaces.
        const [, parent, ...rest] = readFileSync(`/proc/${pid}/stat`, 'utf8')
          .replace(/^.*\) /s, '')
          .split(' ');
        return [{ pid: Number(pid), parent: Number(parent), started: rest[17] ?? '' }];
      } catch {
        return [];
      }
    });
}

/** Notes the descendants of a process, and those of all that were noted before. */
function note(root: number, known: Map<number, string>): void {
  const all = running();
  const isIn = ({ pid, started }: Process): boolean => known.get(pid) === started;
  for (let found = true; found;) {
    const parents = new Set([root, ...all.filter(isIn).map(({ pid }) => pid)]);
    const children = all.filter((one) => parents.has(one.parent) && one.pid !== process.pid && !isIn(one));
    for (const { pid, started } of children) known.set(pid, started);
    found = children.length > 0;
  }
  const alive = new Set(all.map(({ pid }) => pid));
  for (const pid of known.keys()) if (!alive.has(pid)) known.delete(pid);
}

if (import.meta.main) {
  const root = Number(process.argv[2]);
  const known = new Map<number, string>();
  setInterval(() => {
    note(root, known);
    process.title = `sluice tests: ${known.size} processes`;
  }, step);
  process.stdin.resume().once('close', () => {
    note(root, known);
    for (const pid of known.keys()) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // It has ended by itself.
      }
    }
    process.exit();
  });
}

/**
 * What processes use, as Linux tells it in `/proc`. Other systems tell it elsewhere: there the bench has no figure for CPU time and
 * memory.
 */
import { readFileSync, readdirSync, readlinkSync } from 'node:fs';

/** True where the figures can be had. */
export const hasProc = readText('/proc/self/schedstat') !== undefined;

/** A process and all that it started, which still run. */
export function familyOf(pid: number): number[] {
  const children = new Map<number, number[]>();
  for (const process of numbersIn('/proc')) {
    // The name of a program may hold anything but ends with the last bracket; state and parent follow.
    const parent = Number(/\) \S (\d+) [^)]*$/.exec(readText(`/proc/${process}/stat`) ?? '')?.[1]);
    const siblings = children.get(parent);
    if (siblings === undefined) children.set(parent, [process]);
    else siblings.push(process);
  }
  const family = [pid];
  for (const member of family) family.push(...(children.get(member) ?? []));
  return family;
}

/** Microseconds of CPU time that the threads of these processes have used. */
export function cpuOf(pids: readonly number[]): number {
  let used = 0;
  for (const pid of pids) for (const thread of numbersIn(`/proc/${pid}/task`)) used += threadCpu(pid, thread);
  return used;
}

/** A thread: its name as the system has it, and the microseconds of CPU time that it has used. */
export interface Thread {
  readonly name: string;
  /** The one that a process begins with. */
  readonly isMain: boolean;
  readonly used: number;
}

/** The threads of a process. */
export function threadsOf(pid: number): readonly Thread[] {
  return numbersIn(`/proc/${pid}/task`).map((thread) => ({
    name: readText(`/proc/${pid}/task/${thread}/comm`)?.trim() ?? '',
    isMain: thread === pid,
    used: threadCpu(pid, thread),
  }));
}

/** Bytes of memory that a process holds. */
export function rssOf(pid: number): number {
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readText(`/proc/${pid}/status`) ?? '')?.[1] ?? 0) * 1024;
}

/** The process that listens on a TCP port of this machine. */
export function listenerOf(port: number): number | undefined {
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  const listening = new RegExp(`^\\s*\\d+: \\S+:${hex} \\S+ 0A (?:\\S+ ){5}\\s*(\\d+)`, 'm');
  for (const table of ['/proc/net/tcp', '/proc/net/tcp6']) {
    const columns = (readText(table) ?? '').replaceAll(/ +/g, ' ');
    const socket = `socket:[${listening.exec(columns)?.[1] ?? ''}]`;
    const found = numbersIn('/proc').find((pid) =>
      numbersIn(`/proc/${pid}/fd`).some((descriptor) => linkOf(`/proc/${pid}/fd/${descriptor}`) === socket),
    );
    if (found !== undefined) return found;
  }
  return undefined;
}

// Processes, threads and descriptors may end while they are looked at.

/** Microseconds; the system counts nanoseconds. */
function threadCpu(pid: number, thread: number): number {
  return Number.parseInt(readText(`/proc/${pid}/task/${thread}/schedstat`) ?? '0', 10) / 1000;
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

function linkOf(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}

function numbersIn(folder: string): number[] {
  try {
    return readdirSync(folder).map(Number).filter(Number.isInteger);
  } catch {
    return [];
  }
}

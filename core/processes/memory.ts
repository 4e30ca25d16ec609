import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** When it is first looked whether there is nothing to do, and how often from then on, in milliseconds. */
const times = { first: 3_000, again: 10_000 };

/**
 * Gives back to the system what the start of a process took and nobody needs any more, in a moment without anything to do, once: V8 keeps
 * the room for young objects that loading some hundred modules fills. A worker without calls holds 130 MB with it and 172 without. It stands
 * still meanwhile for a tenth of a second.
 */
export function giveBackMemory(isIdle: () => boolean, collect: () => void = collectAll): void {
  const look = (): void => {
    if (isIdle()) collect();
    else setTimeout(look, times.again).unref();
  };
  setTimeout(look, times.first).unref();
}

/** Collects all garbage, and shrinks what it stood in: Node has no other way to ask for that than the function that it shows to tests. */
export function collectAll(): void {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as NodeJS.GCFunction;
  setFlagsFromString('--no-expose-gc');
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}

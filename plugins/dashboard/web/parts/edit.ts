/** Saves changes of objects that others may edit at the same time. */
import { useRef } from 'react';
import { ApiError } from './api.ts';
import { differences } from './differences.ts';

/** A thing with a version, as the admin API shows it. */
interface Versioned {
  readonly version: string;
}

/**
 * Returns a function that saves changes of an object. If the object was changed since, it reads the object again and rejects with an error
 * that lists the differences; saving again keeps those changes too. `changes`: fields that `write` sends. Changes of others in these fields
 * are never overwritten without such an error.
 */
export function useEdit<View extends Versioned>(thing: View | undefined, read: () => Promise<View>) {
  const latest = useRef(thing);
  return async <Answer>(changes: object, write: (version: string) => Promise<Answer>): Promise<Answer> => {
    const known = latest.current;
    try {
      return await write(known?.version ?? '');
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 412 || known === undefined) throw error;
      const fresh = await read();
      latest.current = fresh;
      const others = differences(known, fresh, Object.keys(changes));
      // The page had an older state, of which it shows nothing that is different.
      if (others.length === 0) return write(fresh.version);
      throw new ApiError(412, sentenceOf(others));
    }
  };
}

function sentenceOf(changes: readonly string[]): string {
  return `Somebody else has changed this meanwhile: ${changes.join('; ')}. Save again to keep that beside what you have changed.`;
}

/** Keeps the users in memory up to date with the changes that other gateways write. */
import type { Log } from 'sluice';
import type { Users } from '../core-types.ts';

/** Time between two looks, in milliseconds. */
const followEvery = 1_000;

/** Reads the users and follows them until the returned function is called. */
export async function followUsers(users: Pick<Users, 'load' | 'refresh'>, log: Log): Promise<() => void> {
  await users.load();
  let isFailing = false;
  let isLooking = false;
  const look = async (): Promise<void> => {
    if (isLooking) return;
    isLooking = true;
    try {
      await users.refresh();
      isFailing = false;
    } catch (error) {
      // Once per failure of the database. What was known stays in force.
      if (!isFailing) log.error({ error }, 'the users could not be read');
      isFailing = true;
    } finally {
      isLooking = false;
    }
  };
  const timer = setInterval(() => void look(), followEvery).unref();
  return () => clearInterval(timer);
}

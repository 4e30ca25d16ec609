import { checkMessages } from 'sluice';
import type { Call, Next } from 'sluice/internal';
import { accountOfReferences, type Finding } from './pin.ts';
import { apiOf, mayRefer, referencesIn } from './references.ts';

/**
 * Passes the messages of a session on. A message that names an object of another key is not sent to the provider, and the client gets an
 * error in its own format.
 */
export async function checkedSession(call: Call, next: Next, finding: Finding): ReturnType<Next> {
  const api = apiOf(call.codec.format);
  if (api === undefined) return next(call);
  return checkMessages(call, next, {
    concerns: (data) => mayRefer(data, api),
    check: async (event) => {
      await accountOfReferences(call, referencesIn(event, api), finding);
    },
    failure: 'The objects that this message names cannot be checked now.',
  });
}

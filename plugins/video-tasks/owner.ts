import { caller, type Call } from 'sluice';

/** Returns the owner of the tasks of a call: the id of its key, or a shared owner when the gateway requires no keys. */
export function ownerOf(call: Call): string {
  return call.get(caller)?.id ?? '';
}

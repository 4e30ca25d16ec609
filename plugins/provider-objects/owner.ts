import { caller, type Call } from 'sluice';

/** Whose objects a call may see: the id of its key, or nobody's where no key is asked. */
export function ownerOf(call: Call): string {
  return call.get(caller)?.id ?? '';
}

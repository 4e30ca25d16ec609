import type { PaidMember } from '../_find-paid-members.ts';
import { caller, GatewayError, isObject, wrongValue, type JsonObject } from 'sluice';
import { refusedAddress, type Call } from 'sluice/internal';
import type { NamedAddress, ProviderObject } from './core-types.ts';
import { boundBy, checkMembers } from '../_paid-members.ts';
import type { Around } from './around.ts';
import { unusableFile } from './batch-file.ts';
import { allowModels } from './create.ts';
import { placeOfReferences } from './pin.ts';
import type { Place } from './place.ts';
import { knownOfFile } from './read-file.ts';
import { isMadeInCalls } from './references.ts';

/** What is known of the lines of a file. */
type LinesAsked = JsonObject & { readonly models: readonly string[] };

/**
 * What the lines of a file ask for: of models that the caller may use, as may be what the lines refer to. Throws 400 for a file of which
 * that is not known: whatever its lines ask for would be asked for unseen.
 */
export async function requestedLines(
  call: Call,
  file: ProviderObject,
  place: Place,
  param: string,
  around: Around,
): Promise<LinesAsked> {
  const { requested, reason } = await knownOfFile(call, file, around);
  if (!isObject(requested) || !Array.isArray(requested['models']) || !Array.isArray(requested['references']))
    throw unusableFile(reason, param);
  const models = requested['models'] as readonly string[];
  allowModels(call, models);
  checkLines(call, requested, param);
  checkAddresses(requested, file, place, param);
  const references = requested['references'] as readonly (readonly [string, string])[];
  const there = await placeOfReferences(
    call,
    references.map(([kind, id]) => ({ kind, id, path: param })),
    around.finding,
    isMadeInCalls,
  );
  if (there !== undefined && (there.channel.id !== place.channel.id || there.key.id !== place.key.id))
    throw wrongValue(param, 'a file whose lines refer to what the same provider account keeps');
  return { ...requested, models: [...models] };
}

/** Throws 403 for lines that name an address which the channel may not use. */
function checkAddresses(
  { addresses }: JsonObject,
  { kind }: ProviderObject,
  { channel }: Place,
  param: string,
): void {
  // Earlier versions noted none. Google alone reads addresses of storage in batches.
  if (!Array.isArray(addresses) && !kind.startsWith('generate-content/')) return;
  if (!Array.isArray(addresses))
    throw new GatewayError(
      'invalid_value',
      'The addresses that the file names are not known: upload it again.',
      {
        param,
      },
    );
  const refused = refusedAddress(addresses as unknown as readonly NamedAddress[], channel);
  if (refused !== undefined) throw refused;
}

/** Throws 403 for lines that run a further model or a service which the key of the call may not use. */
function checkLines(call: Call, { paid }: JsonObject, param: string): void {
  const key = call.get(caller);
  if (key === undefined || boundBy(key) === undefined) return;
  if (!Array.isArray(paid))
    throw new GatewayError('invalid_value', 'The tools that the file names are not known: upload it again.', {
      param,
    });
  checkMembers(key, paid as unknown as readonly PaidMember[]);
}

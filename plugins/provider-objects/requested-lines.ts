import type { PaidMember } from '../_find-paid-members.ts';
import { caller, GatewayError, isObject, wrongValue, type JsonObject } from 'sluice';
import { refusedAddress, type Call } from 'sluice/internal';
import type { NamedAddress, ProviderObject } from './core-types.ts';
import { boundBy, checkMembers } from '../_paid-members.ts';
import type { ObjectServices } from './services.ts';
import { unusableFile } from './batch-file.ts';
import { allowModels } from './create.ts';
import { accountOfReferences } from './pin.ts';
import type { ProviderAccount } from './account.ts';
import { knownOfFile } from './read-file.ts';
import { isMadeInCalls } from './references.ts';

/** Stored facts about the lines of a file. */
type KnownLines = JsonObject & { readonly models: readonly string[] };

/**
 * Returns the requests in the lines of a file, after checking that the caller may use their models and objects. Throws 400 for a file whose
 * lines are unknown, because they could not be checked.
 */
export async function requestedLines(
  call: Call,
  file: ProviderObject,
  account: ProviderAccount,
  param: string,
  services: ObjectServices,
): Promise<KnownLines> {
  const { requested, reason } = await knownOfFile(call, file, services);
  if (!isObject(requested) || !Array.isArray(requested['models']) || !Array.isArray(requested['references']))
    throw unusableFile(reason, param);
  const models = requested['models'] as readonly string[];
  allowModels(call, models);
  checkLines(call, requested, param);
  checkAddresses(requested, file, account, param);
  const references = requested['references'] as readonly (readonly [string, string])[];
  const there = await accountOfReferences(
    call,
    references.map(([kind, id]) => ({ kind, id, path: param })),
    services.finding,
    isMadeInCalls,
  );
  if (there !== undefined && (there.channel.id !== account.channel.id || there.key.id !== account.key.id))
    throw wrongValue(param, 'a file whose lines refer only to objects of the same provider account');
  return { ...requested, models: [...models] };
}

/** Throws 403 for lines that name an address which the channel may not use. */
function checkAddresses(
  { addresses }: JsonObject,
  { kind }: ProviderObject,
  { channel }: ProviderAccount,
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

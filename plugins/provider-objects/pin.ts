/** Routes calls that refer to provider objects to the channel and key that keep them. Refuses objects that another API key owns. */
import { GatewayError, type JsonValue } from 'sluice';
import type { Call, InternalTools, Next } from 'sluice/internal';
import type { ObjectStore } from './core-types.ts';
import { kindOf, type ObjectFormat } from './collections.ts';
import { ownerOf } from './owner.ts';
import { accountOf, type ProviderAccount } from './account.ts';
import {
  apiOf,
  mayRefer,
  referencesIn,
  referencesInFields,
  unknownObject,
  type Reference,
} from './references.ts';

/** Services and options for finding the channel and key of objects. */
export interface Finding {
  readonly store: ObjectStore;
  readonly catalog: InternalTools['catalog'];
  /** True where ids that no key owns are passed to the provider. */
  readonly foreign: boolean;
}

/**
 * Returns the channel and key that keep the objects that a request refers to; undefined where it refers to none. Throws 404 for an object that is
 * not the caller's, and 400 where they are kept in different places. `mayPass`: kinds of which ids that no key owns are passed on.
 */
export async function accountOfReferences(
  call: Call,
  references: readonly Reference[],
  { store, catalog, foreign }: Finding,
  mayPass: (kind: string) => boolean = () => false,
): Promise<ProviderAccount | undefined> {
  const owner = ownerOf(call);
  let account: ProviderAccount | undefined;
  for (const reference of references) {
    const { kind, id, path, soft } = reference;
    // oxlint-disable-next-line no-await-in-loop -- few, and each may end it
    const object = await store.find(owner, kind, id);
    if (object === undefined) {
      // oxlint-disable-next-line no-await-in-loop -- as above
      if ((soft === true || foreign || mayPass(kind)) && !(await store.isOwned(kind, id))) continue;
      throw unknownObject(reference);
    }
    const here = accountOf(object, catalog);
    if (account !== undefined && (account.channel.id !== here.channel.id || account.key.id !== here.key.id))
      throw new GatewayError(
        'invalid_value',
        `${path} is stored by another provider account than the other objects of this request.`,
        { param: path },
      );
    account = here;
  }
  return account;
}

/** Sends a call that refers to objects to the channel and key that keep them. Other calls are passed on unchanged. */
export async function pinnedCall(call: Call, next: Next, finding: Finding): ReturnType<Next> {
  const api = apiOf(call.codec.format);
  const references = api === undefined ? [] : referencesOf(call, api);
  if (references.length === 0) return next(call);
  const candidates = finding.catalog.candidates(call.model, call.operation);
  // If no candidate stores such objects, the translation to its format drops or rejects the reference.
  const isStrange = (kind: string): boolean =>
    !candidates.some(({ channel: { keeps = {} } }) =>
      Object.entries(keeps).some(([format, names]) =>
        names.some((name) => kindOf({ format, name }) === kind),
      ),
    );
  const account = await accountOfReferences(call, references, finding, isStrange);
  if (account === undefined) return next(call);
  const { channel, key } = account;
  if (!candidates.some((one) => one.channel.id === channel.id))
    throw new GatewayError(
      'invalid_value',
      `The model "${call.model}" is not served where ${references[0]?.id ?? 'this'} is kept.`,
      { param: 'model' },
    );
  // Written anew, so that the provider reads what was read here, also where a name was given twice.
  return next(call.with({ body: call.body, affinity: { channel: channel.id, key: key.id, only: true } }));
}

function referencesOf(call: Call, api: ObjectFormat): readonly Reference[] {
  const body = call.bodyOutline;
  if (call.wire.params.form === undefined) return referencesIn(body as JsonValue, api);
  return referencesInFields(Object.entries(body), api);
}

/** Returns false for a call whose body surely refers to no object. Searches the text of the body, because that is faster than walking through its values. */
export function refers(call: Call): boolean {
  switch (call.operation) {
    case 'state':
    case 'tool':
    case 'list-models':
    case 'realtime':
    case 'get-video':
    case 'delete-video':
      return false;
  }
  const api = apiOf(call.codec.format);
  if (api === undefined) return false;
  const { bytes, outline } = call.wire;
  // A form, or what was written here in the client's place.
  if (bytes.length === 0 || call.edits.body !== undefined) return true;
  // For a long body, the outline without its long texts is searched.
  return mayRefer(outline?.text ?? bytes, api);
}

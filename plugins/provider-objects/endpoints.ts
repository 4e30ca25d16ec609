/** Endpoints that all kinds of provider objects have: create, list, retrieve, change, delete, and the paths below an object. */
import { GatewayError, isObject, type JsonObject, type Upstream } from 'sluice';
import type { Call } from 'sluice/internal';
import type { ProviderObject } from './core-types.ts';
import { keep, noObject, forwardedParameters, type ObjectServices } from './services.ts';
import { sendRequest, isGone, jsonOf } from './send-request.ts';
import { reserveExtension, forget, keepLonger } from './cache-storage.ts';
import { collectionOf, collections, isId, kindOf, type Collection } from './collections.ts';
import { bodyOf, checkedJson, createByForm, createByJson, formOf, madeAnyway } from './create.ts';
import { sendForm } from './form-upload.ts';
import { ownerOf } from './owner.ts';
import { pageOf } from './pages.ts';
import { passedOn } from './passed.ts';
import type { AddPath, Handle } from './paths.ts';
import { accountOf } from './account.ts';
import { asShown } from './shown.ts';
import { checkChange, checkCreation, checkPost } from './unknown-cost.ts';

/** Number of objects of a list that are requested at the same time. */
const atOnce = 8;

/** Adds the endpoints of all collections. */
export function addEndpoints(add: AddPath, services: ObjectServices): void {
  const { finding, store } = services;
  for (const collection of collections) {
    if (collection.creates === 'form')
      add('POST', collection, '', async (call) => {
        checkCreation(call, collection);
        return createByForm(call, collection, services);
      });
    if (collection.creates === 'json')
      add('POST', collection, '', async (call) => {
        checkCreation(call, collection);
        return createByJson(call, collection, services);
      });
    if (collection.shown) {
      add('GET', collection, '', async (call) => {
        const page = await pageOf(call, collection, store);
        const seen = await eachOf(page.objects, (object) => described(call, collection, object, services));
        return page.body(seen.filter((one) => one !== undefined));
      });
      add('GET', collection, '/:id', async (call, _, { id = '' }) => {
        const object = await ownedObject(call, collection, id, services);
        const seen = await described(call, collection, object, services, true);
        if (seen === undefined) throw noObject(collection, id);
        return seen;
      });
    }
    const { changes } = collection;
    if (changes !== undefined)
      add(changes, collection, '/:id', async (call, _, { id = '' }) => {
        const object = await ownedObject(call, collection, id, services);
        const account = accountOf(object, finding.catalog);
        const body = await checkedJson(call, collection, account, services);
        checkChange(call, collection, body);
        const storage =
          collection.name === 'cachedContents'
            ? await reserveExtension(call, object, body, services)
            : undefined;
        let isCharged = false;
        return madeAnyway(call, services, async (own) => {
          const question = { method: changes, path: '', body: JSON.stringify(body) } as const;
          const json = await jsonOf(await sent(own, object, services, question), services.answerSize);
          if (storage === undefined) await store.see(object, json);
          else await keepLonger(call, object, json, storage, services);
          isCharged = true;
          return asShown(call, collection, json, services);
        }).finally(() => storage?.end(isCharged));
      });
    if (collection.deletes)
      add('DELETE', collection, '/:id', async (call, _, { id = '' }) => {
        const object = await ownedObject(call, collection, id, services);
        if (object.charge !== undefined && (await services.poller.refresh(object)).charge !== undefined)
          throw new GatewayError(
            'conflict',
            `This ${collection.noun} is still being worked on: cancel it first.`,
            {
              retryable: false,
            },
          );
        const answer = await sent(call, object, services, { method: 'DELETE', path: '' });
        await forget(object, services);
        return jsonOf(answer, services.answerSize);
      });
    if (collection.below) addBelow(add, collection, services);
  }
}

/** Adds the paths below an object, such as the events of a job or the content of a file, which are passed on to its provider. */
function addBelow(add: AddPath, collection: Collection, services: ObjectServices): void {
  const handle =
    (method: 'GET' | 'POST' | 'DELETE'): Handle =>
    async (call, _, { id = '', rest = '' }) => {
      const object = await ownedObject(call, collection, id, services);
      if (!rest.split('/').every(isId))
        throw new GatewayError('unknown_url', `There is nothing at ${call.wire.path}.`);
      if (method === 'POST') checkPost(call, collection, rest);
      if (
        object.charge !== undefined &&
        method === 'GET' &&
        (await services.poller.refresh(object)).charge !== undefined
      )
        throw new GatewayError('not_found', `The results of this ${collection.noun} are not there yet.`);
      const question = { method, path: `/${rest}` } as const;
      if (method !== 'POST') return passedOn(call, await sent(call, object, services, question));
      const account = accountOf(object, services.finding.catalog);
      const body = bodyOf(call);
      if (/^\s*multipart\//i.test(body.type)) {
        const form = await formOf(call, collection, services, { account });
        return sendForm(form, async ({ upload, headers }) =>
          passedOn(call, await sent(call, object, services, { ...question, upload, headers })),
        );
      }
      const json = await checkedJson(call, collection, account, services);
      const result = await madeAnyway(call, services, async (own) => {
        const answer = await sent(own, object, services, { ...question, body: JSON.stringify(json) });
        const seen = await jsonOf(answer, services.answerSize);
        // An upload that is complete has become a file.
        if (collection.name === 'uploads' && isObject(seen['file'])) {
          const files = collectionOf('chat-completions', 'files');
          await keep(own, { collection: files, account, seen: seen['file'] }, services);
        }
        return seen;
      });
      if (rest === 'cancel') await seeNow(services, object, result);
      return asShown(call, collection, result, services, object.charge !== undefined);
    };
  for (const method of ['GET', 'POST', 'DELETE'] as const)
    add(method, collection, '/:id/*rest', handle(method));
}

async function seeNow({ store }: ObjectServices, object: ProviderObject, seen: JsonObject): Promise<void> {
  if (seen['id'] === object.id && object.charge === undefined) await store.see(object, seen);
}

/** Returns the caller's object with this id. Throws 404 if there is none. */
export async function ownedObject(
  call: Call,
  collection: Collection,
  id: string,
  services: ObjectServices,
): Promise<ProviderObject> {
  const object = isId(id) ? await services.store.find(ownerOf(call), kindOf(collection), id) : undefined;
  if (object === undefined) throw noObject(collection, id);
  return object;
}

/** Sends a request about an object to its provider. An object that the provider does not have any more is removed here. */
async function sent(
  call: Call,
  object: ProviderObject,
  services: ObjectServices,
  question: Parameters<typeof sendRequest>[3],
): Promise<Upstream> {
  const [format, name] = partsOf(object.kind);
  const passed = forwardedParameters(call);
  try {
    return await sendRequest(call, accountOf(object, services.finding.catalog), format, {
      query: passed.query,
      ...question,
      headers: { ...passed.headers, ...question.headers },
      path: `/${name}/${object.id}${question.path}`,
    });
  } catch (error) {
    if (isGone(error) && question.path === '') await forget(object, services);
    throw error;
  }
}

function partsOf(kind: string): readonly [Collection['format'], string] {
  const slash = kind.indexOf('/');
  return [kind.slice(0, slash) as Collection['format'], kind.slice(slash + 1)];
}

/** Returns the current description of an object, from the provider where it may have changed; undefined when the object is gone. */
async function described(
  call: Call,
  collection: Collection,
  object: ProviderObject,
  services: ObjectServices,
  anew = false,
): Promise<JsonObject | undefined> {
  const { seen } = object;
  if (object.charge !== undefined) {
    const now = await services.poller.refresh(object);
    // An object that has just been charged is requested again, because the stored description may be shorter than the provider's.
    if (now.charge !== undefined) return asShown(call, collection, now.seen, services, true);
  }
  const hasMoved = object.charge !== undefined || collection.isMoving?.(seen) === true;
  if (!anew && !hasMoved && Object.keys(seen).length > 0) return asShown(call, collection, seen, services);
  try {
    const answer = await sent(call, object, services, { method: 'GET', path: '', query: {} });
    const result = await jsonOf(answer, services.answerSize);
    if (object.charge === undefined) await services.store.see(object, result);
    return asShown(call, collection, result, services);
  } catch (error) {
    if (isGone(error)) return undefined;
    if (anew || Object.keys(seen).length === 0) throw error;
    return asShown(call, collection, seen, services);
  }
}

async function eachOf<From, To>(
  list: readonly From[],
  make: (one: From) => Promise<To>,
): Promise<readonly To[]> {
  const made: To[] = [];
  for (let from = 0; from < list.length; from += atOnce) {
    // oxlint-disable-next-line no-await-in-loop -- so many at once and no more
    for (const one of await Promise.all(list.slice(from, from + atOnce).map(make))) made.push(one);
  }
  return made;
}

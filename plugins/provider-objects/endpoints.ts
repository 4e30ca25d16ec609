import { concat, isObservable, map, of, type Observable } from 'rxjs';
import {
  addReplyHeaders,
  caller,
  GatewayError,
  type GatewayEvent,
  type JsonObject,
  type Upstream,
} from 'sluice';
import {
  isObject,
  listFormat,
  matchesModel,
  missing,
  requestBody,
  type Call,
  type ProviderObject,
  type RequestBody,
  type WholeEndpoint,
} from 'sluice/internal';
import { keep, noObject, passedWords, type Around } from './around.ts';
import { ask, askJson, isGone, jsonOf } from './ask.ts';
import { collectionOf, collections, isId, kindOf, type Collection } from './collections.ts';
import { beginUpload } from './form-upload.ts';
import { ownerOf } from './owner.ts';
import { pageOf } from './pages.ts';
import { placeOfReferences } from './pin.ts';
import { chosenPlace, placeOf, type Place } from './place.ts';
import { referencesIn } from './references.ts';
import { asShown } from './shown.ts';

/** The handler of a path, for the collection that a request's format has there. */
export type Handle = (
  call: Call,
  collection: Collection,
  params: Readonly<Record<string, string>>,
) => Promise<JsonObject | Observable<GatewayEvent>>;

/** Adds one path of a collection. Where several formats have it, the headers of a request say which is meant. */
export type AddPath = (
  method: WholeEndpoint['method'],
  collection: Collection,
  behind: string,
  handle: Handle,
) => void;

/** How many objects of a list are asked about at once. */
const atOnce = 8;

/** Gathers paths, and adds each to the gateway once, whatever collections have it. */
export function pathAdder({ tools }: Pick<Around, 'tools'>): AddPath {
  const handlers = new Map<string, Map<string, readonly [Collection, Handle]>>();
  return (method, collection, behind, handle) => {
    for (const base of collection.paths) {
      const path = base + behind;
      const known = handlers.get(`${method} ${path}`);
      if (known !== undefined) {
        known.set(collection.format, [collection, handle]);
        continue;
      }
      const byFormat = new Map([[collection.format as string, [collection, handle] as const]]);
      handlers.set(`${method} ${path}`, byFormat);
      const formats = collections.filter(({ paths }) => paths.includes(base)).map(({ format }) => format);
      tools.endpoint({
        method,
        path,
        format: formats.length === 1 ? collection.format : listFormat,
        readsBody: true,
        handle: async (call: Call, params) => {
          const here = byFormat.get(call.format.name);
          if (here === undefined)
            throw new GatewayError('unknown_url', `There is nothing for this format at ${call.wire.path}.`);
          const answer = await here[1](call, here[0], params);
          return isObservable(answer) ? answer : of<GatewayEvent>({ type: 'result', value: answer });
        },
      });
    }
  };
}

/** Adds what all collections have alike: making, listing, looking, changing, removing, and what lies below. */
export function addEndpoints(add: AddPath, around: Around): void {
  const { finding, store } = around;
  for (const collection of collections) {
    if (collection.creates === 'form')
      add('POST', collection, '', (call) => createByForm(call, collection, around));
    if (collection.creates === 'json')
      add('POST', collection, '', (call) => createByJson(call, collection, around));
    if (collection.shown) {
      add('GET', collection, '', async (call) => {
        const page = await pageOf(call, collection, store);
        const seen = await eachOf(page.objects, (object) => described(call, collection, object, around));
        return page.body(seen.filter((one) => one !== undefined));
      });
      add('GET', collection, '/:id', async (call, _, { id = '' }) => {
        const object = await ownedObject(call, collection, id, around);
        const seen = await described(call, collection, object, around, true);
        if (seen === undefined) throw noObject(collection, id);
        return seen;
      });
    }
    const { changes } = collection;
    if (changes !== undefined)
      add(changes, collection, '/:id', async (call, _, { id = '' }) => {
        const object = await ownedObject(call, collection, id, around);
        const place = placeOf(object, finding.catalog);
        const body = await checkedJson(call, collection, place, around);
        const seen = await sent(call, object, around, {
          method: changes,
          path: '',
          body: JSON.stringify(body),
        });
        const json = await jsonOf(seen, around.answerSize);
        await store.see(object, json);
        return asShown(call, collection, json, around);
      });
    if (collection.deletes)
      add('DELETE', collection, '/:id', async (call, _, { id = '' }) => {
        const object = await ownedObject(call, collection, id, around);
        if (object.charge !== undefined && (await around.poller.refresh(object)).charge !== undefined)
          throw new GatewayError(
            'conflict',
            `This ${collection.noun} is still being worked on: cancel it first.`,
            {
              retryable: false,
            },
          );
        const answer = await sent(call, object, around, { method: 'DELETE', path: '' });
        await store.remove(object);
        return jsonOf(answer, around.answerSize);
      });
    if (collection.below) addBelow(add, collection, around);
  }
}

/** What lies below an object goes to whoever keeps that: the events of a job, the content of a file, the files of a store. */
function addBelow(add: AddPath, collection: Collection, around: Around): void {
  const handle =
    (method: 'GET' | 'POST' | 'DELETE'): Handle =>
    async (call, _, { id = '', rest = '' }) => {
      const object = await ownedObject(call, collection, id, around);
      if (!rest.split('/').every(isId))
        throw new GatewayError('unknown_url', `There is nothing at ${call.wire.path}.`);
      if (
        object.charge !== undefined &&
        method === 'GET' &&
        (await around.poller.refresh(object)).charge !== undefined
      )
        throw new GatewayError('not_found', `The results of this ${collection.noun} are not there yet.`);
      const question = { method, path: `/${rest}` } as const;
      if (method !== 'POST') return passedOn(call, await sent(call, object, around, question));
      const place = placeOf(object, around.finding.catalog);
      const body = bodyOf(call);
      if (/^\s*multipart\//i.test(body.type)) {
        const { upload, headers } = await beginUpload(body, collection.format, around.fileSize);
        return passedOn(call, await sent(call, object, around, { ...question, upload, headers }));
      }
      const json = await checkedJson(call, collection, place, around);
      const answer = await sent(call, object, around, { ...question, body: JSON.stringify(json) });
      const told = await jsonOf(answer, around.answerSize);
      // An upload that is complete has become a file.
      if (collection.name === 'uploads' && isObject(told['file']))
        await keep(
          call,
          { collection: collectionOf('chat-completions', 'files'), place, seen: told['file'] },
          around,
        );
      if (rest === 'cancel') await seeNow(around, object, told);
      return asShown(call, collection, told, around, object.charge !== undefined);
    };
  for (const method of ['GET', 'POST', 'DELETE'] as const)
    add(method, collection, '/:id/*rest', handle(method));
}

async function seeNow({ store }: Around, object: ProviderObject, seen: JsonObject): Promise<void> {
  if (seen['id'] === object.id && object.charge === undefined) await store.see(object, seen);
}

/** The caller's object of that id. Throws 404 where there is none. */
export async function ownedObject(
  call: Call,
  collection: Collection,
  id: string,
  around: Around,
): Promise<ProviderObject> {
  const object = isId(id) ? await around.store.find(ownerOf(call), kindOf(collection), id) : undefined;
  if (object === undefined) throw noObject(collection, id);
  return object;
}

/** Asks for something of an object's. What is gone at the provider is forgotten here. */
async function sent(
  call: Call,
  object: ProviderObject,
  around: Around,
  question: Parameters<typeof ask>[3],
): Promise<Upstream> {
  const [format, name] = partsOf(object.kind);
  const passed = passedWords(call);
  try {
    return await ask(call, placeOf(object, around.finding.catalog), format, {
      query: passed.query,
      ...question,
      headers: { ...passed.headers, ...question.headers },
      path: `/${name}/${object.id}${question.path}`,
    });
  } catch (error) {
    if (isGone(error) && question.path === '') await around.store.remove(object);
    throw error;
  }
}

function partsOf(kind: string): readonly [Collection['format'], string] {
  const slash = kind.indexOf('/');
  return [kind.slice(0, slash) as Collection['format'], kind.slice(slash + 1)];
}

/** The description of an object as it is now, or as it was last seen where that is sure to hold; undefined when it is gone. */
async function described(
  call: Call,
  collection: Collection,
  object: ProviderObject,
  around: Around,
  anew = false,
): Promise<JsonObject | undefined> {
  const { seen } = object;
  if (object.charge !== undefined) {
    const now = await around.poller.refresh(object);
    // What has just been charged is asked for once more: a provider's answer may be longer than what is kept of it.
    if (now.charge !== undefined) return asShown(call, collection, now.seen, around, true);
  }
  const hasMoved = object.charge !== undefined || collection.isMoving?.(seen) === true;
  if (!anew && !hasMoved && Object.keys(seen).length > 0) return asShown(call, collection, seen, around);
  try {
    const answer = await sent(call, object, around, { method: 'GET', path: '', query: {} });
    const told = await jsonOf(answer, around.answerSize);
    if (object.charge === undefined) await around.store.see(object, told);
    return asShown(call, collection, told, around);
  } catch (error) {
    if (isGone(error)) return undefined;
    if (anew || Object.keys(seen).length === 0) throw error;
    return asShown(call, collection, seen, around);
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

/** The body of a call that nobody has read. */
export function bodyOf(call: Call): RequestBody {
  const body = call.get(requestBody);
  if (body === undefined) throw new Error('This call came without its body.');
  return body;
}

/** A JSON body whose references are the caller's and lie at the place where it goes, and whose models the caller may use. */
async function checkedJson(
  call: Call,
  collection: Collection,
  place: Place,
  { finding }: Around,
): Promise<JsonObject> {
  const body = await bodyOf(call).json();
  const pinned = await placeOfReferences(call, referencesIn(body, collection.format), finding);
  if (pinned !== undefined && (pinned.channel.id !== place.channel.id || pinned.key.id !== place.key.id))
    throw new GatewayError(
      'invalid_value',
      'What this request refers to is kept by another provider account.',
    );
  allowModels(call, modelsIn(body, collection));
  return body;
}

/** The models that a body names: graders and runs of evals have theirs anywhere in it, others at the top. */
function modelsIn(body: JsonObject, { name: collection }: Collection): readonly string[] {
  const models = new Set<string>();
  const rest: unknown[] = [body];
  for (let next = rest.pop(); next !== undefined; next = rest.pop()) {
    if (Array.isArray(next)) for (const one of next) rest.push(one);
    else if (isObject(next))
      for (const name in next) {
        const member = next[name];
        if (name === 'model' && typeof member === 'string') models.add(member.replace(/^models\//, ''));
        else if (collection === 'evals' && typeof member === 'object' && member !== null) rest.push(member);
      }
  }
  return [...models];
}

/** Throws 403 for a model that the caller's key may not use. */
export function allowModels(call: Call, models: readonly string[]): void {
  const allowed = call.get(caller)?.models;
  const stranger = allowed && models.find((model) => !matchesModel(allowed, model));
  if (stranger !== undefined)
    throw new GatewayError('model_not_allowed', `This API key has no access to the model ${stranger}.`, {
      param: 'model',
    });
}

async function createByForm(call: Call, collection: Collection, around: Around): Promise<JsonObject> {
  const form = await beginUpload(bodyOf(call), collection.format, around.fileSize);
  const { model } = form;
  const { catalog } = around.finding;
  try {
    const models = model === undefined || !catalog.serves(model) ? [] : [model];
    const place = chosenPlace(call, collection, catalog, { models });
    const passed = passedWords(call);
    const seen = await askJson(
      call,
      place,
      collection.format,
      {
        method: 'POST',
        path: `/${collection.name}`,
        query: passed.query,
        headers: { ...passed.headers, ...form.headers },
        upload: form.upload,
      },
      around.answerSize,
    );
    const requested = form.end();
    const known = requested === undefined ? {} : { requested: { ...requested } as unknown as JsonObject };
    await keep(call, { collection, place, seen, known }, around);
    return seen;
  } catch (error) {
    form.upload.bytes.destroy();
    throw form.wrong ?? error;
  }
}

async function createByJson(call: Call, collection: Collection, around: Around): Promise<JsonObject> {
  const { format, name } = collection;
  const body = await bodyOf(call).json();
  const pinned = await placeOfReferences(call, referencesIn(body, format), around.finding);
  allowModels(call, modelsIn(body, collection));
  const told = body['model'];
  if (told === undefined && (name === 'cachedContents' || name === 'fine_tuning/jobs'))
    throw missing('model');
  const model = typeof told === 'string' ? told.replace(/^models\//, '') : undefined;
  const place = chosenPlace(call, collection, around.finding.catalog, {
    pinned,
    models: model === undefined ? [] : [model],
  });
  const there = model === undefined ? undefined : place.channel.upstreamModel(model);
  const spelled = format === 'generate-content' ? `models/${there}` : there;
  return madeAnyway(call, around, async (own) => {
    const seen = await askJson(
      own,
      place,
      format,
      {
        method: 'POST',
        path: `/${name}`,
        ...passedWords(call),
        body: JSON.stringify(there === undefined ? body : { ...body, model: spelled ?? there }),
      },
      around.answerSize,
    );
    await keep(own, { collection, place, seen }, around);
    return asShown(call, collection, seen, around);
  });
}

/** Makes something in a call that goes on when its client leaves: what a provider has begun is kept, and charged. */
export async function madeAnyway<Made>(
  call: Call,
  { tools }: Around,
  make: (own: Call) => Promise<Made>,
): Promise<Made> {
  const own = tools.detached.detach(call);
  try {
    return await make(own.call);
  } finally {
    own.end();
  }
}

/** What of a provider's answer a client gets: JSON as it is, and files as bytes that no browser takes for a page. */
export function passedOn(call: Call, { status, headers, bytes }: Upstream): Observable<GatewayEvent> {
  const { 'content-type': type, 'content-length': length } = headers;
  addReplyHeaders(call, { 'x-content-type-options': 'nosniff' });
  const answer: GatewayEvent = {
    type: 'answer',
    status,
    headers: {
      'content-type': plainType(type),
      ...(length === undefined ? {} : { 'content-length': length }),
    },
  };
  return concat(of(answer), bytes.pipe(map((piece): GatewayEvent => ({ type: 'bytes', bytes: piece }))));
}

function plainType(type: string | string[] | undefined): string {
  return typeof type === 'string' &&
    /^(?:application\/(?:x-)?(?:jsonl?|ndjson)|text\/plain|image\/(?!svg)[\w.+-]+)\b/i.test(type)
    ? type
    : 'application/octet-stream';
}

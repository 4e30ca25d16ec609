/** Creates objects at a provider from JSON or from a form with a file, after checks of the models and objects that the request names. */
import { from, type Observable } from 'rxjs';
import {
  caller,
  GatewayError,
  isObject,
  wrongValue,
  missingValue,
  matchesModel,
  type GatewayEvent,
  type JsonObject,
} from 'sluice';
import { requestBody, type Call } from 'sluice/internal';
import type { RequestBody } from './core-types.ts';
import { checkPaidMembers } from '../_paid-members.ts';
import { keep, forwardedParameters, type ObjectServices } from './services.ts';
import { requestJson } from './send-request.ts';
import { reserveStorage } from './cache-storage.ts';
import type { Collection } from './collections.ts';
import { FormReferences } from './form-references.ts';
import { beginUpload, sendForm, type FormUpload } from './form-upload.ts';
import { accountOfReferences } from './pin.ts';
import { selectAccount, type ProviderAccount } from './account.ts';
import { referencesIn } from './references.ts';
import type { BegunLines, RequestedLines } from './known-lines.ts';
import { RequestLines, type Sampling } from './request-lines.ts';
import { asShown } from './shown.ts';

/** Returns the unread body of a call. */
export function bodyOf(call: Call): RequestBody {
  const body = call.get(requestBody);
  if (body === undefined) throw new Error('This call came without its body.');
  return body;
}

/** Reads the JSON body of a call. Throws unless its references are the caller's and kept at `place`, and the caller may use its models. */
export async function checkedJson(
  call: Call,
  collection: Collection,
  account: ProviderAccount,
  { finding }: ObjectServices,
): Promise<JsonObject> {
  const body = await bodyOf(call).json();
  checkAccount(await accountOfReferences(call, referencesIn(body, collection.format), finding), account);
  allowModels(call, modelsIn(body, collection));
  checkPaidMembers(call.get(caller), body, { runs: 'elsewhere' });
  if (collection.name === 'evals') checkSources(body);
  return body;
}

/** Throws 400 where the objects that a request refers to are kept by another provider account than the one that receives the request. */
function checkAccount(pinned: ProviderAccount | undefined, account: ProviderAccount | undefined): void {
  if (pinned === undefined || account === undefined) return;
  if (pinned.channel.id !== account.channel.id || pinned.key.id !== account.key.id)
    throw new GatewayError(
      'invalid_value',
      'The objects of this request are stored by another provider account.',
    );
}

/** Options of {@link formOf}. */
export interface FormOptions {
  /** Channel and key that receive the form, where they are known. */
  readonly account?: ProviderAccount;
  /** Treatment of the lines of the file. Default: `forward`. */
  readonly sampling?: Sampling;
}

/** Begins to read the form of a call. Its references must be the caller's, and kept at `place` where that is known. */
export function formOf(
  call: Call,
  collection: Collection,
  services: ObjectServices,
  { account, sampling = 'forward' }: FormOptions = {},
): Promise<FormUpload> {
  const references = new FormReferences(collection.format, async (found) =>
    checkAccount(await accountOfReferences(call, found, services.finding), account),
  );
  const lines = linesOf(collection, services, sampling);
  return beginUpload(bodyOf(call), { lines, references }, services.fileSize);
}

/** Returns the models that a body names: at the top, and for graders and runs of evals at any depth. */
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

/** Sources of evals that contain what all keys of the provider account have created. */
const foreignSources: ReadonlySet<unknown> = new Set(['responses', 'stored_completions', 'logs']);

/** Throws 400 for an eval whose data may be of other keys, because providers store responses for the account as a whole. */
function checkSources({ data_source_config: config, data_source: data }: JsonObject): void {
  const source = isObject(data) ? data['source'] : undefined;
  for (const [param, member] of [
    ['data_source_config', config],
    ['data_source.source', source],
  ] as const)
    if (isObject(member) && foreignSources.has(member['type']))
      throw wrongValue(
        `${param}.type`,
        'one that names its own data, because stored data of the provider may belong to other keys',
      );
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

/** Returns the setting `sampling` for lines from which no member may be dropped. */
export function withoutDropping({ tools }: Pick<ObjectServices, 'tools'>): Sampling {
  return tools.settings.sampling === 'forward' ? 'forward' : 'refuse';
}

/** Returns a reader for the lines of a file, which continues a file that was begun. */
export function linesOf(
  { format }: Pick<Collection, 'format'>,
  { tools }: Pick<ObjectServices, 'tools'>,
  sampling: Sampling,
  begun?: BegunLines,
): RequestLines {
  const { limits } = tools.settings;
  return new RequestLines(
    format,
    { formats: tools.format, limits, sampling, budget: tools.overload.bodyBudget },
    begun,
  );
}

/** Returns what is stored about the lines of a file: null, with the reason, for a file whose lines are not all requests. */
export function knownOf(requested: RequestedLines | undefined, reason?: string): JsonObject {
  if (requested !== undefined) return { requested: { ...requested } as unknown as JsonObject };
  return { requested: null, ...(reason === undefined ? {} : { reason }) };
}

/**
 * Creates an object from a form with a file, which is sent to the provider while it arrives. Continues when the client leaves after the end of the
 * form. Returns events for what was dropped from lines of the file, and the description of the object.
 */
export async function createByForm(
  call: Call,
  collection: Collection,
  services: ObjectServices,
): Promise<Observable<GatewayEvent>> {
  const { catalog } = services.finding;
  const isStrict = call.wire.headers['x-sluice-strict'] === 'true';
  const sampling = isStrict ? withoutDropping(services) : services.tools.settings.sampling;
  return sendForm(await formOf(call, collection, services, { sampling }), async (form) => {
    const { model } = form;
    const models = model === undefined || !catalog.serves(model) ? [] : [model];
    const account = selectAccount(call, collection, catalog, { models });
    const passed = forwardedParameters(call);
    const question = {
      method: 'POST',
      path: `/${collection.name}`,
      query: passed.query,
      headers: { ...passed.headers, ...form.headers },
      upload: form.upload,
    } as const;
    return madeAnyway(call, services, async (own) => {
      const seen = await requestJson(own, account, collection.format, question, services.answerSize);
      await keep(own, { collection, account, seen, known: knownOf(form.end(), form.reason) }, services);
      const { format } = collection;
      return from<GatewayEvent[]>([
        ...form.losses.map((path) => ({
          type: 'loss' as const,
          loss: { path, kind: 'setting' as const, from: format, to: format },
        })),
        { type: 'result', value: seen },
      ]);
    });
  });
}

/** Creates an object from a JSON body, with the provider's name of its model. Continues when the client leaves. Returns its description. */
export async function createByJson(
  call: Call,
  collection: Collection,
  services: ObjectServices,
): Promise<JsonObject> {
  const { format, name } = collection;
  const body = await bodyOf(call).json();
  const pinned = await accountOfReferences(call, referencesIn(body, format), services.finding);
  allowModels(call, modelsIn(body, collection));
  checkPaidMembers(call.get(caller), body, { runs: 'elsewhere' });
  if (name === 'evals') checkSources(body);
  const requestedModel = body['model'];
  if (requestedModel === undefined && (name === 'cachedContents' || name === 'fine_tuning/jobs'))
    throw missingValue('model');
  const model = typeof requestedModel === 'string' ? requestedModel.replace(/^models\//, '') : undefined;
  const account = selectAccount(call, collection, services.finding.catalog, {
    pinned,
    models: model === undefined ? [] : [model],
  });
  const there = model === undefined ? undefined : account.channel.upstreamModel(model);
  const spelled = format === 'generate-content' ? `models/${there}` : there;
  const isCache = name === 'cachedContents' && model !== undefined;
  const storage = isCache ? await reserveStorage(call, account, { model, body }, services) : undefined;
  let isCharged = false;
  return madeAnyway(call, services, async (own) => {
    const seen = await requestJson(
      own,
      account,
      format,
      {
        method: 'POST',
        path: `/${name}`,
        ...forwardedParameters(call),
        body: JSON.stringify(there === undefined ? body : { ...body, model: spelled ?? there }),
      },
      services.answerSize,
    );
    await keep(own, { collection, account, seen, ...storage?.stored(seen) }, services);
    isCharged = true;
    return asShown(call, collection, seen, services);
  }).finally(() => storage?.end(isCharged));
}

/** Runs `make` in a call that continues when its client leaves, because the object that a provider has begun must be stored and charged. */
export async function madeAnyway<Made>(
  call: Call,
  { tools }: ObjectServices,
  make: (own: Call) => Promise<Made>,
): Promise<Made> {
  const own = tools.detached.detach(call);
  try {
    return await make(own.call);
  } finally {
    own.end();
  }
}

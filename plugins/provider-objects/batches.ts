import { randomBytes } from 'node:crypto';
import { of } from 'rxjs';
import {
  caller,
  GatewayError,
  isObject,
  wrongType,
  wrongValue,
  missingValue,
  type JsonObject,
  type JsonValue,
} from 'sluice';
import { checkRequestMembers, type Call } from 'sluice/internal';
import type { ObjectCharge } from './core-types.ts';
import { checkPaidMembers } from '../_paid-members.ts';
import { keep, forwardedParameters, type ObjectServices } from './services.ts';
import { requestJson } from './send-request.ts';
import { checkEndpoint } from './batch-file.ts';
import { checkInline, fileNameIn, inlineOf, modelsIn, withModel } from './batch-body.ts';
import { collectionOf, type Collection } from './collections.ts';
import { allowModels, bodyOf, madeAnyway } from './create.ts';
import { ownedObject } from './endpoints.ts';
import { modelOfBatch } from './batch-model.ts';
import { checkQuery, type AddPath } from './paths.ts';
import { accountOfReferences } from './pin.ts';
import { selectAccount, accountOf, type ProviderAccount } from './account.ts';
import { referencesIn } from './references.ts';
import { requestedLines } from './requested-lines.ts';
import { measured, needsOfLines, reserved, ruleOf, type NeedsOf } from './reserve.ts';
import { asShown } from './shown.ts';

/** Milliseconds after which an unfinished batch is given up. Providers give batches up after days. */
const day = 86_400_000;
const longestBatch = 30 * day;

/** Adds the paths by which batches are made and cancelled, in each API. */
export function addBatches(add: AddPath, services: ObjectServices): void {
  const ofChat = collectionOf('chat-completions', 'batches');
  const ofMessages = collectionOf('messages', 'messages/batches');
  const ofGenerateContent = collectionOf('generate-content', 'batches');
  add('POST', ofChat, '', (call) => createFromFile(call, ofChat, services));
  add('POST', ofMessages, '', (call) => createFromRequests(call, ofMessages, services));
  add('POST', ofGenerateContent, '/:id\\:cancel', (call, _, { id = '' }) =>
    cancel(call, ofGenerateContent, id, services),
  );
  for (const version of ['v1beta', 'v1'])
    for (const action of ['batchGenerateContent', 'asyncBatchEmbedContent'])
      services.tools.endpoint({
        method: 'POST',
        path: `/${version}/models/*model\\:${action}`,
        format: 'generate-content',
        readsBody: true,
        handle: async (call: Call, { model = '' }) =>
          of({ type: 'result', value: await createOfModel(call, { model, action }, services) }),
      });
}

/** Members that may create a batch from a file. Providers have others that add requests or change the model. */
const ofBatch: ReadonlySet<string> = new Set([
  'input_file_id',
  'endpoint',
  'completion_window',
  'metadata',
  'output_expires_after',
]);

/** Handles `POST /v1/batches`: the requests are the lines of a file. */
async function createFromFile(
  call: Call,
  collection: Collection,
  services: ObjectServices,
): Promise<JsonObject> {
  const body = await bodyOf(call).json();
  const { input_file_id: input } = body;
  if (input === undefined) throw missingValue('input_file_id');
  if (typeof input !== 'string') throw wrongType('input_file_id', 'a string');
  const file = await ownedObject(call, collectionOf(collection.format, 'files'), input, services);
  const account = accountOf(file, services.finding.catalog);
  checkMembers(body, account);
  const requested = await requestedLines(call, file, account, 'input_file_id', services);
  checkEndpoint(requested, body['endpoint']);
  for (const model of requested.models)
    if (account.channel.upstreamModel(model) !== model)
      throw new GatewayError(
        'invalid_value',
        `The file names the model "${model}", which its channel does not serve under this name. Names in a file go to the provider as they are.`,
        { param: 'input_file_id' },
      );
  const named = modelOfBatch(body, requested, account);
  if (named !== undefined) allowModels(call, [named.model]);
  return create(
    call,
    {
      collection,
      account,
      models: named === undefined ? requested.models : [named.model],
      path: '/batches',
      body: named?.body ?? body,
      known: { endpoint: body['endpoint'] ?? null },
      needs: async () => needsOfLines(requested, named?.model ?? '', 'input_file_id'),
    },
    services,
  );
}

/** Throws 400 for members by which a batch would be of other requests, or for another model. */
function checkMembers(body: JsonObject, { channel: { batchModel } }: ProviderAccount): void {
  const ofModel = batchModel?.replace(/\..*/, '');
  const unknown = Object.keys(body).find((name) => !ofBatch.has(name) && name !== ofModel);
  if (unknown !== undefined)
    throw new GatewayError(
      'invalid_value',
      `A batch is made of a file alone: "${unknown.slice(0, 100)}" may name requests that nobody has looked at.`,
      { param: unknown },
    );
}

/** Handles `POST /v1/messages/batches`: the requests are in the body, each with a model of its own. */
async function createFromRequests(
  call: Call,
  collection: Collection,
  services: ObjectServices,
): Promise<JsonObject> {
  const body = await bodyOf(call).json();
  const { requests } = body;
  if (requests === undefined) throw missingValue('requests');
  if (!Array.isArray(requests)) throw wrongType('requests', 'a list');
  const list = requests as readonly JsonValue[];
  const { members } = services.tools.settings.limits;
  const models = new Set<string>();
  list.forEach((request, index) => {
    const params = isObject(request) ? request['params'] : undefined;
    const path = `requests[${index}]`;
    if (!isObject(request) || !isObject(params)) throw wrongType(`${path}.params`, 'an object');
    checkRequestMembers(request, { path, members });
    checkRequestMembers(params, { path: `${path}.params`, members });
    if (typeof params['model'] !== 'string') throw wrongType(`${path}.params.model`, 'a string');
    checkPaidMembers(call.get(caller), params, { path: `${path}.params`, runs: 'batch' });
    models.add(params['model']);
  });
  allowModels(call, [...models]);
  const pinned = await accountOfReferences(call, referencesIn(body, collection.format), services.finding);
  const account = selectAccount(call, collection, services.finding.catalog, { pinned, models: [...models] });
  const named = list.map((request) => renamed(request as JsonObject, account));
  return create(
    call,
    {
      collection,
      account,
      models: [...models],
      path: '/messages/batches',
      body: { ...body, requests: named },
      known: {},
      needs: () => {
        const codec = services.tools.format('messages')?.codecs.chat;
        const all = list.map((request) => (request as JsonObject)['params'] as JsonObject);
        return measured(
          all.map((params) => ({ model: String(params['model']), codec, body: params })),
          (index) => `requests[${index}].params`,
        );
      },
    },
    services,
  );
}

/** Returns the request with the provider's name of its model. */
function renamed(request: JsonObject, { channel }: ProviderAccount): JsonObject {
  const params = request['params'] as JsonObject;
  const model = String(params['model']);
  return { ...request, params: { ...params, model: channel.upstreamModel(model) ?? model } };
}

/** Handles `POST …/models/{model}:batchGenerateContent`: the requests are in the body, or are the lines of a file. */
async function createOfModel(
  call: Call,
  { model, action }: { readonly model: string; readonly action: string },
  services: ObjectServices,
): Promise<JsonObject> {
  const collection = collectionOf('generate-content', 'batches');
  await checkQuery(call, collection.format, services);
  const body = await bodyOf(call).json();
  const inline = inlineOf(body);
  checkInline(body, services.tools.settings.limits.members);
  if (modelsIn(body).some((named) => named !== model)) throw otherModel();
  allowModels(call, [model]);
  checkPaidMembers(call.get(caller), body, { runs: 'batch' });
  const pinned = await accountOfReferences(call, referencesIn(body, collection.format), services.finding);
  const account = selectAccount(call, collection, services.finding.catalog, { pinned, models: [model] });
  const embeds = action === 'asyncBatchEmbedContent';
  let needs: NeedsOf = () => {
    const codec = services.tools.format('generate-content')?.codecs[embeds ? 'embed' : 'chat'];
    const all = inline.map(({ request }) => (isObject(request) ? request : {}));
    return measured(
      all.map((request) => ({ model, codec, body: request })),
      (index) => `batch.inputConfig.requests.requests[${index}].request`,
    );
  };
  const name = fileNameIn(body);
  if (name !== undefined) {
    const file = await ownedObject(call, collectionOf(collection.format, 'files'), name, services);
    const requested = await requestedLines(call, file, account, 'fileName', services);
    if (requested.models.some((named) => named !== model)) throw otherModel();
    needs = async () => needsOfLines(requested, model, 'fileName');
  }
  const there = account.channel.upstreamModel(model) ?? model;
  return create(
    call,
    {
      collection,
      account,
      models: [model],
      path: `/models/${encodeURIComponent(there)}:${action}`,
      body: withModel(body, there),
      known: { embeds },
      needs,
    },
    services,
  );
}

function otherModel(): GatewayError {
  return wrongValue('model', 'that of the path in every request of a batch');
}

interface Wanted {
  readonly collection: Collection;
  readonly account: ProviderAccount;
  readonly models: readonly string[];
  readonly path: string;
  readonly body: JsonObject;
  readonly known: JsonObject;
  readonly needs: NeedsOf;
}

/**
 * Makes a batch, whose results will be charged to the caller. It goes on when the client leaves. The most that it may come to is held of the
 * caller's budgets from before it is made until it is charged or has come to nothing.
 */
async function create(call: Call, wanted: Wanted, services: ObjectServices): Promise<JsonObject> {
  const { collection, account, models, path, body, known, needs } = wanted;
  const budgetReservation = await reserved(call, account, needs, services);
  try {
    return await madeAnyway(call, services, async (own) => {
      const question = {
        method: 'POST',
        path,
        ...forwardedParameters(call),
        body: JSON.stringify(body),
      } as const;
      const seen = await requestJson(own, account, collection.format, question, services.answerSize);
      const charge: ObjectCharge = {
        id: `batch_${randomBytes(16).toString('hex')}`,
        asks: 0,
        refusals: 0,
        deadline: Date.now() + longestBatch,
        pricing: ruleOf(call.get(caller)?.pricing, models),
        ...(budgetReservation === undefined ? {} : { reservation: budgetReservation.id }),
      };
      const reservation = budgetReservation && { ...budgetReservation, lease: longestBatch + day };
      await keep(
        own,
        { collection, account, seen, known: { ...known, models }, charge, reservation },
        services,
      );
      return asShown(call, collection, seen, services, true);
    });
  } catch (error) {
    if (budgetReservation !== undefined) services.tools.bookkeeper.release(budgetReservation.id);
    throw error;
  }
}

/** Cancels a batch. It is charged when it has ended, because its usage until then is unknown. */
async function cancel(
  call: Call,
  collection: Collection,
  id: string,
  services: ObjectServices,
): Promise<JsonObject> {
  const object = await ownedObject(call, collection, id, services);
  const account = accountOf(object, services.finding.catalog);
  const path = `/${collection.name}/${object.id}:cancel`;
  return requestJson(
    call,
    account,
    collection.format,
    { method: 'POST', path, body: '{}' },
    services.answerSize,
  );
}

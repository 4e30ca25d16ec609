/**
 * Reads and changes the bodies of batches of generateContent: the requests in them or the file that has the requests, and the models that they
 * name.
 */
import { isObject, wrongType, wrongValue, missingValue, type JsonObject, type JsonValue } from 'sluice';
import { checkRequestMembers } from 'sluice/internal';

/** Returns the input configuration of a batch. Throws 400 where it has both requests and a file, neither, or two spellings of one member. */
function configOf({ batch }: JsonObject): JsonObject {
  const config = isObject(batch) ? oneOf(batch, 'inputConfig', 'input_config') : undefined;
  if (!isObject(config)) throw missingValue('batch.inputConfig');
  const hasFile = oneOf(config, 'fileName', 'file_name') !== undefined;
  if (hasFile === (config['requests'] !== undefined))
    throw wrongValue('batch.inputConfig', 'one that has either requests or a fileName');
  return config;
}

function oneOf(object: JsonObject, name: string, other: string): JsonValue | undefined {
  if (object[name] !== undefined && object[other] !== undefined)
    throw wrongValue(`batch.${other}`, `absent where ${name} is given`);
  return object[name] ?? object[other];
}

/** Returns the id of the file that has the requests; undefined where they are in the body. */
export function fileNameIn(body: JsonObject): string | undefined {
  const name = oneOf(configOf(body), 'fileName', 'file_name');
  if (name === undefined) return undefined;
  if (typeof name !== 'string') throw wrongType('batch.inputConfig.fileName', 'a string');
  return name.replace(/^files\//, '');
}

/** Returns the requests in the body. */
export function inlineOf(body: JsonObject): readonly JsonObject[] {
  const outer = configOf(body)['requests'];
  if (outer === undefined) return [];
  const list = isObject(outer) ? outer['requests'] : undefined;
  if (!Array.isArray(list) || !list.every(isObject))
    throw wrongType('batch.inputConfig.requests.requests', 'a list of objects');
  return list;
}

/** Throws 400 for a request of a batch with names that some providers read as other names, or with more than `members` of them. */
export function checkInline(body: JsonObject, members: number): void {
  const { batch } = body;
  if (isObject(batch)) checkRequestMembers(batch, { path: 'batch', members });
  checkRequestMembers(configOf(body), { path: 'batch.inputConfig', members });
  inlineOf(body).forEach((one, index) => {
    const path = `batch.inputConfig.requests.requests[${index}]`;
    checkRequestMembers(one, { path, members });
    if (isObject(one['request'])) checkRequestMembers(one['request'], { path: `${path}.request`, members });
  });
}

/** Returns the models that a batch names in its body. */
export function modelsIn(body: JsonObject): readonly string[] {
  const { batch } = body;
  const models = [isObject(batch) ? batch['model'] : undefined];
  for (const { request } of inlineOf(body)) models.push(isObject(request) ? request['model'] : undefined);
  return models.filter((one) => typeof one === 'string').map((one) => one.replace(/^models\//, ''));
}

/** Returns the body with the provider's name of the model in place of the public one. */
export function withModel(body: JsonObject, there: string): JsonObject {
  const requests = inlineOf(body).map((one) => {
    const { request } = one;
    return isObject(request) && typeof request['model'] === 'string'
      ? { ...one, request: { ...request, model: `models/${there}` } }
      : one;
  });
  const { batch } = body;
  if (!isObject(batch)) return body;
  const named = batch['model'] === undefined ? batch : { ...batch, model: `models/${there}` };
  if (requests.length === 0) return { ...body, batch: named };
  const { input_config: snake, inputConfig = snake, ...rest } = named;
  const config = isObject(inputConfig) ? inputConfig : {};
  return { ...body, batch: { ...rest, inputConfig: { ...config, requests: { requests } } } };
}

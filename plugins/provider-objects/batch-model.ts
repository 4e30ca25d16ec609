/** Determines the model of a batch at providers where the batch names one model and its lines name none. */
import { GatewayError, isObject, wrongType, missingValue, type JsonObject, type JsonValue } from 'sluice';
import type { ProviderAccount } from './account.ts';

/** The model of a batch whose lines name none, and the body of the batch with the provider's name of it. */
export interface NamedModel {
  /** Public name of the model. */
  readonly model: string;
  readonly body: JsonObject;
}

/**
 * Returns the model of a batch and its body, at providers where the batch names the model and its lines do not: the model in the body, or the one that
 * all lines name. Undefined where the lines must name their models. Throws 400 where no model is named, or the body and the lines name different ones.
 */
export function modelOfBatch(
  body: JsonObject,
  { models, unnamed }: JsonObject & { readonly models: readonly string[] },
  { channel }: ProviderAccount,
): NamedModel | undefined {
  const { batchModel: path } = channel;
  if (path === undefined) {
    if (unnamed !== true) return undefined;
    throw new GatewayError('invalid_value', 'Every line of the file must name its model.', {
      param: 'input_file_id',
    });
  }
  const names = path.split('.');
  const [line, another] = models;
  const requested = memberAt(body, names) ?? (another === undefined ? line : undefined);
  if (requested === undefined) throw missingValue(path);
  if (typeof requested !== 'string') throw wrongType(path, 'a string');
  const stranger = models.find((model) => model !== requested);
  const there = channel.upstreamModel(requested);
  if (stranger !== undefined || there === undefined)
    throw new GatewayError(
      'invalid_value',
      stranger === undefined
        ? `The model "${requested}" is not served by the channel that stores the file.`
        : `The file names the model "${stranger}", and the batch another.`,
      { param: path },
    );
  return { model: requested, body: withMember(body, names, there) };
}

function memberAt(object: JsonObject, names: readonly string[]): JsonValue | undefined {
  let value: JsonValue | undefined = object;
  for (const name of names) value = isObject(value) ? value[name] : undefined;
  return value;
}

function withMember(object: JsonObject, [name = '', ...rest]: readonly string[], value: string): JsonObject {
  const inner = object[name];
  return {
    ...object,
    [name]: rest.length === 0 ? value : withMember(isObject(inner) ? inner : {}, rest, value),
  };
}

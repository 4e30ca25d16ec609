/** Embeddings by Vertex AI's `:predict`: decodes its requests and encodes its replies. */
import type { EmbedInput, EmbedRequest, EmbedResult } from '../../model/embed.ts';
import type { JsonObject } from '../../model/json.ts';
import type { Usage } from '../../model/usage.ts';
import { GatewayError, missingValue, wrongValue } from '../../sdk/errors.ts';
import { optionalNumber, optionalObject, optionalString, readObjects } from '../_shared/check.ts';
import { defined } from '../_shared/fields.ts';
import { extraOf } from '../_shared/spelling.ts';
import { asNumbers } from '../_shared/vectors.ts';
import { formatName, purposes } from './wire.ts';

/** Key of `extra` for members that only `:predict` knows: the encoders of all formats report them as dropped. */
const predictName = 'predict';

/** Text of a request. */
interface Instance {
  readonly text: string;
  readonly task: string | undefined;
  readonly title: string | undefined;
}

/**
 * Decodes the body of `:predict`, as embedding models of Vertex AI take it:
 * https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/text-embeddings-api. Throws 400 for instances that are no texts, or
 * that differ in what they are for.
 */
export function decodePredict(body: JsonObject, model: string, mostInstances: number): EmbedRequest {
  const instances = readObjects(body.instances, 'instances', readInstance);
  const [first] = instances;
  if (first === undefined) throw missingValue('instances');
  if (instances.length > mostInstances)
    throw wrongValue('instances', `a list of at most ${mostInstances} texts`);
  const { outputDimensionality, ...parameters } = optionalObject(body.parameters, 'parameters') ?? {};
  const dimensions = optionalNumber(outputDimensionality, 'parameters.outputDimensionality', {
    min: 1,
    integer: true,
  });
  return {
    operation: 'embed',
    format: formatName,
    model,
    inputs: instances.map(({ text }): EmbedInput => ({ type: 'text', text })),
    ...defined({ dimensions, title: shared(instances, 'title') }),
    ...defined({ purpose: purposes.find(([, word]) => word === shared(instances, 'task'))?.[0] }),
    ...extraOf(predictName, parameters),
  };
}

function readInstance(instance: JsonObject, at: string): Instance {
  const text = optionalString(instance.content, `${at}.content`);
  if (text === undefined) throw missingValue(`${at}.content`);
  return {
    text,
    task: optionalString(instance.task_type ?? instance.taskType, `${at}.task_type`),
    title: optionalString(instance.title, `${at}.title`),
  };
}

/** Returns the value that all instances share. Throws 400 where they differ. */
function shared(instances: readonly Instance[], name: 'task' | 'title'): string | undefined {
  const value = instances[0]?.[name];
  const other = instances.findIndex((instance) => instance[name] !== value);
  if (other < 0) return value;
  const path = `instances[${other}].${name === 'task' ? 'task_type' : name}`;
  throw new GatewayError('invalid_value', `${path} must be the same in all instances.`, { param: path });
}

/** Encodes the reply to `:predict`. Only a reply to one text has token counts, because they are known only for all texts together. */
export function predictions({ vectors }: EmbedResult, usage: Usage | undefined): JsonObject {
  const tokens = vectors.length === 1 ? usage?.input : undefined;
  return {
    predictions: vectors.map((vector) => ({
      embeddings: {
        values: asNumbers(vector),
        statistics: { truncated: false, ...defined({ token_count: tokens }) },
      },
    })),
  };
}

import { wrongValue } from '../../sdk/errors.ts';
import type { ListedModel } from '../../model/event.ts';
import type { JsonObject } from '../../model/json.ts';
import type { ModelListing } from '../../sdk/format.ts';
import { nameInAddress, ownAddress } from '../_shared/model-address.ts';

/** Output and input modalities of models, by operation. Default: text. */
const outputs = new Map([
  ['embed', 'EMBEDDING'],
  ['generate-image', 'IMAGE'],
  ['edit-image', 'IMAGE'],
  ['vary-image', 'IMAGE'],
  ['create-video', 'VIDEO'],
  ['speak', 'SPEECH'],
]);
const inputs = new Map([
  ['transcribe', 'SPEECH'],
  ['translate-audio', 'SPEECH'],
]);

function outputOf({ operation = 'chat' }: ListedModel): string {
  return outputs.get(operation) ?? 'TEXT';
}

/** Returns the members of a summary that clients require, and those that the gateway knows. */
function summaryOf(model: ListedModel): JsonObject {
  const { id, ownedBy, operation = 'chat', takes = [] } = model;
  return {
    modelArn: id.startsWith('arn:') ? id : ownAddress + id,
    modelId: id,
    modelName: id,
    providerName: ownedBy,
    inputModalities: [inputs.get(operation) ?? 'TEXT', ...(takes.includes('image') ? ['IMAGE'] : [])],
    outputModalities: [outputOf(model)],
    responseStreamingSupported: operation === 'chat',
    customizationsSupported: [],
    inferenceTypesSupported: ['ON_DEMAND'],
    modelLifecycle: { status: 'ACTIVE' },
  };
}

interface Filter {
  /** The values of a closed set. Absent: any text, in any case. */
  readonly oneOf?: readonly string[];
  valueOf(model: ListedModel): string | undefined;
}

/** Filters of a list, by the names of their parameters. The gateway customizes no model, and sells no throughput. */
const filters: Readonly<Record<string, Filter>> = {
  byProvider: { valueOf: ({ ownedBy }) => ownedBy },
  byOutputModality: { oneOf: ['TEXT', 'IMAGE', 'EMBEDDING', 'VIDEO', 'SPEECH'], valueOf: outputOf },
  byInferenceType: { oneOf: ['ON_DEMAND', 'PROVISIONED'], valueOf: () => 'ON_DEMAND' },
  byCustomizationType: {
    oneOf: ['FINE_TUNING', 'CONTINUED_PRE_TRAINING', 'DISTILLATION'],
    valueOf: () => undefined,
  },
};

/** Returns the models that all filters of a query let through. Throws 400 for a value that a filter does not have. */
function filtered(models: readonly ListedModel[], query: URLSearchParams): readonly ListedModel[] {
  return Object.entries(filters).reduce((left, [name, { oneOf, valueOf }]) => {
    const wanted = query.get(name);
    if (wanted === null) return left;
    if (oneOf?.includes(wanted) === false) throw wrongValue(name, `one of ${oneOf.join(', ')}`);
    return left.filter((model) => valueOf(model)?.toLowerCase() === wanted.toLowerCase());
  }, models);
}

/**
 * ListFoundationModels and GetFoundationModel of the control plane.
 * https://docs.aws.amazon.com/bedrock/latest/APIReference/API_ListFoundationModels.html
 */
export const modelListing: ModelListing = {
  list: (models, query) => ({ modelSummaries: filtered(models, query).map(summaryOf) }),
  one: (model) => ({ modelDetails: summaryOf(model) }),
  idOf: nameInAddress,
};

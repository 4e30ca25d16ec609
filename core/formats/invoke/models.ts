import { wrongValue } from '../../sdk/errors.ts';
import type { ListedModel } from '../../model/event.ts';
import type { JsonObject } from '../../model/json.ts';
import type { ModelListing } from '../../sdk/format.ts';
import { nameInAddress, ownAddress, ownProfileAddress } from '../_shared/model-address.ts';

/**
 * Names of profiles: a part of the world, a maker, a model.
 * https://docs.aws.amazon.com/bedrock/latest/userguide/inference-profiles-support.html
 */
const profileName = /^(?:us|us-gov|eu|apac|jp|au|ca|global)\.[a-z0-9]+\.[\w.:-]+$/;

/** The gateway has no profiles of applications. */
const types = ['SYSTEM_DEFINED', 'APPLICATION'];

/** Returns the members of a summary that clients require. */
function summaryOf({ id }: ListedModel): JsonObject {
  return {
    inferenceProfileId: id,
    inferenceProfileName: id.replaceAll(/[^a-z0-9]+/gi, ' ').trim(),
    inferenceProfileArn: ownProfileAddress + id,
    models: [{ modelArn: ownAddress + id }],
    status: 'ACTIVE',
    type: 'SYSTEM_DEFINED',
  };
}

/**
 * ListInferenceProfiles and GetInferenceProfile of the control plane. Profiles are the models with such names.
 * https://docs.aws.amazon.com/bedrock/latest/APIReference/API_ListInferenceProfiles.html
 */
export const profileListing: ModelListing = {
  list(models, query) {
    const type = query.get('type');
    if (type !== null && !types.includes(type)) throw wrongValue('type', `one of ${types.join(', ')}`);
    const found = type === 'APPLICATION' ? [] : models.filter(({ id }) => profileName.test(id));
    return { inferenceProfileSummaries: found.map(summaryOf) };
  },
  one: summaryOf,
  idOf: nameInAddress,
};

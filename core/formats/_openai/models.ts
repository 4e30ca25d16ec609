/** The model list of OpenAI’s formats. */
import type { ListedModel } from '../../model/event.ts';
import type { JsonObject } from '../../model/json.ts';
import type { ModelListing } from '../../sdk/format.ts';

function one(model: ListedModel): JsonObject {
  return { id: model.id, object: 'model', created: model.created, owned_by: model.ownedBy };
}

/** The model list: one page, no query parameters. */
export const models: ModelListing = {
  list: (listed) => ({ object: 'list', data: listed.map(one) }),
  one,
};

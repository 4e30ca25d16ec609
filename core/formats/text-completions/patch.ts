import type { JsonObject } from '../../model/json.ts';
import type { Edits } from '../format.ts';

/** The client's body with the edits made and nothing else changed. Reasoning has no place in this format. */
export function patch(body: JsonObject, { model, settings }: Edits): JsonObject {
  return {
    ...body,
    ...(model === undefined ? {} : { model }),
    ...(settings?.maxOutput === undefined ? {} : { max_tokens: settings.maxOutput }),
  };
}

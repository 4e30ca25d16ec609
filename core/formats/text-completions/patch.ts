import type { JsonObject } from '../../model/json.ts';
import type { ModelTraits } from '../../model/traits.ts';
import { defined } from '../_shared/fields.ts';
import type { Edits } from '../../sdk/format.ts';

/** Returns the client's body with the edits and no other change. Reasoning has no place in this format, and is reported. */
export function patch(
  body: JsonObject,
  { model, settings }: Edits,
  _traits: ModelTraits,
  drop: (path: string) => void = () => {},
): JsonObject {
  const { reasoning } = settings ?? {};
  if (reasoning !== undefined && reasoning.mode !== 'off' && reasoning.effort !== 'none')
    drop('settings.reasoning');
  return {
    ...body,
    ...defined({ model, max_tokens: settings?.maxOutput }),
  };
}

import { isObject, type JsonObject, type MutableObject } from '../../model/json.ts';
import type { ModelTraits } from '../../model/traits.ts';
import { given } from '../_shared/check.ts';
import type { Edits } from '../../sdk/format.ts';
import { besideReasoning, readReasoning, reasoningFields } from './reasoning/index.ts';
import { writeReasoning } from './reasoning/write.ts';

/** Returns the client's body with the edits and no other changes. Reports settings that the model does not support. */
export function patch(
  body: JsonObject,
  edits: Edits,
  traits: ModelTraits,
  drop: (path: string) => void = () => {},
): JsonObject {
  const patched: MutableObject = { ...body };
  if (edits.model !== undefined) patched.model = edits.model;
  const { reasoning, maxOutput } = edits.settings ?? {};
  if (maxOutput !== undefined) {
    for (const field of limitFields(body, traits)) patched[field] = maxOutput;
  }
  if (reasoning !== undefined) {
    const merged = { ...readReasoning(body), ...reasoning };
    for (const field of reasoningFields) delete patched[field];
    writeReasoning(merged, traits, patched, (path) => {
      // This format has no setting for the visibility of reasoning: reasoning in a response is always shown.
      if (path !== 'settings.reasoning.show' || merged.show === false) drop(path);
    });
    // Members that only the provider of such an object knows stay.
    for (const [field, rest] of Object.entries(besideReasoning(body))) {
      const written = patched[field];
      if (isObject(written) || field === 'chat_template_kwargs')
        patched[field] = { ...rest, ...(isObject(written) ? written : {}) };
    }
  }
  return patched;
}

/** Sets every limit field that the client sent, so that none has the old value. */
function limitFields(body: JsonObject, traits: ModelTraits): readonly string[] {
  const written = ['max_tokens', 'max_completion_tokens'].filter((field) => given(body[field]));
  return written.length > 0 ? written : [traits.outputLimitField ?? 'max_completion_tokens'];
}

import { isObject, type JsonObject, type MutableObject } from '../../model/json.ts';
import type { ModelTraits } from '../../model/traits.ts';
import { given } from '../_shared/check.ts';
import type { Edits } from '../../sdk/format.ts';
import { besideReasoning, readReasoning, reasoningFields } from './reasoning/index.ts';
import { writeReasoning } from './reasoning/write.ts';

/** The client's body with the edits made and nothing else changed. What the model cannot be asked for is reported. */
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
      // To be shown is no wish in this format: what a provider tells of its reasoning is shown.
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

/** Every limit that the client wrote, so that none is left that says otherwise. */
function limitFields(body: JsonObject, traits: ModelTraits): readonly string[] {
  const written = ['max_tokens', 'max_completion_tokens'].filter((field) => given(body[field]));
  return written.length > 0 ? written : [traits.outputLimitField ?? 'max_completion_tokens'];
}

import { isObject, type JsonObject } from '../../model/json.ts';
import type { ModelTraits } from '../../model/traits.ts';
import type { MutableObject } from '../_shared/settings.ts';
import type { Edits } from '../../sdk/format.ts';
import { writeReasoning } from './reasoning.ts';

/** The client's body with another reasoning or output limit; the model stands in the path. What the model cannot be asked for is reported. */
export function patch(
  body: JsonObject,
  { settings }: Edits,
  traits: ModelTraits,
  lose: (path: string) => void = () => {},
): JsonObject {
  if (settings?.reasoning === undefined && settings?.maxOutput === undefined) return body;
  const next: MutableObject = { ...body };
  const config: MutableObject = { ...(isObject(body.inferenceConfig) ? body.inferenceConfig : {}) };
  if (settings.maxOutput !== undefined) config.maxTokens = settings.maxOutput;
  if (Object.keys(config).length > 0) next.inferenceConfig = config;
  if (settings.reasoning === undefined) return next;
  const { thinking: _, ...fields } = isObject(body.additionalModelRequestFields)
    ? body.additionalModelRequestFields
    : {};
  const { effort: _effort, ...output } = isObject(body.outputConfig) ? body.outputConfig : {};
  set(next, 'additionalModelRequestFields', fields);
  set(next, 'outputConfig', output);
  const maxOutput = typeof config.maxTokens === 'number' ? config.maxTokens : undefined;
  writeReasoning(next, settings.reasoning, {}, { traits, maxOutput, lose });
  return next;
}

function set(into: MutableObject, field: string, value: JsonObject): void {
  if (Object.keys(value).length > 0) into[field] = value;
  else delete into[field];
}

import { isObject, type JsonObject, type MutableObject } from '../../model/json.ts';
import type { ModelTraits } from '../../model/traits.ts';
import { removeAt } from '../_shared/settings.ts';
import type { Edits } from '../../sdk/format.ts';
import { reasoningPaths, writeReasoning } from './reasoning.ts';

/**
 * Returns the client's body with changed reasoning or output limit. The model is in the path. Reports settings that the model does not
 * support.
 */
export function patch(
  body: JsonObject,
  { settings }: Edits,
  traits: ModelTraits,
  drop: (path: string) => void = () => {},
): JsonObject {
  if (settings?.reasoning === undefined && settings?.maxOutput === undefined) return body;
  const next: MutableObject = { ...body };
  const config: MutableObject = { ...(isObject(body.inferenceConfig) ? body.inferenceConfig : {}) };
  if (settings.maxOutput !== undefined) config.maxTokens = settings.maxOutput;
  if (isObject(body.inferenceConfig) || Object.keys(config).length > 0) next.inferenceConfig = config;
  if (settings.reasoning === undefined) return next;
  for (const path of reasoningPaths) removeAt(next, path);
  const maxOutput = typeof config.maxTokens === 'number' ? config.maxTokens : undefined;
  writeReasoning(next, settings.reasoning, {}, { traits, maxOutput, drop });
  return next;
}

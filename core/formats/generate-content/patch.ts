/** Edits the model, reasoning and output limit of a generateContent request that otherwise passes through. */
import { isObject, type JsonObject, type MutableObject } from '../../model/json.ts';
import type { ModelTraits } from '../../model/traits.ts';
import type { Edits } from '../../sdk/format.ts';
import { writeReasoning } from './reasoning.ts';
import { official } from './wire.ts';

/**
 * Returns the client's body with a changed model, reasoning or output limit. Copies the changed objects and keeps the client's spelling of
 * fields. Reports settings that the model does not support.
 */
export function patch(
  body: JsonObject,
  edits: Edits,
  traits: ModelTraits,
  drop: (path: string) => void = () => {},
): JsonObject {
  const { model, settings } = edits;
  const patched: MutableObject = { ...body };
  if (model !== undefined && typeof body.model === 'string') patched.model = renamed(body.model, model);
  if (settings?.reasoning === undefined && settings?.maxOutput === undefined) return patched;
  const key =
    body.generationConfig === undefined && body.generation_config !== undefined
      ? 'generation_config'
      : 'generationConfig';
  patched[key] = patchConfig(isObject(body[key]) ? body[key] : {}, settings, traits, drop);
  return patched;
}

/** Returns a model's name in place of another, with `models/` before it where it was. */
export function renamed(before: string, model: string): string {
  return before.startsWith('models/') && !model.startsWith('models/') ? `models/${model}` : model;
}

function patchConfig(
  before: JsonObject,
  settings: NonNullable<Edits['settings']>,
  traits: ModelTraits,
  drop: (path: string) => void,
): JsonObject {
  const config: MutableObject = { ...official(before, 'generationConfig') };
  if (settings.maxOutput !== undefined) config.maxOutputTokens = settings.maxOutput;
  if (settings.reasoning === undefined) return config;
  const written = writeReasoning({
    reasoning: settings.reasoning,
    traits,
    showByDefault: false,
    drop,
  });
  const thinking = isObject(config.thinkingConfig) ? official(config.thinkingConfig, 'thinkingConfig') : {};
  const { thinkingBudget: _budget, thinkingLevel: _level, ...rest } = thinking;
  config.thinkingConfig = { ...rest, ...written };
  if (Object.keys(config.thinkingConfig).length === 0) delete config.thinkingConfig;
  return config;
}

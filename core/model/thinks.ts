/** Decides whether a model reasons about a request, from the traits of the model and the settings of the request. */
import type { ChatRequest } from './chat.ts';
import type { Reasoning } from './reasoning.ts';
import type { ModelTraits } from './traits.ts';

/** Returns true where a request switches reasoning on, false where it switches it off, and undefined where it does neither. */
function asksToThink({ mode, effort, budget }: Reasoning): boolean | undefined {
  if (mode !== undefined) return mode !== 'off';
  if (effort !== undefined) return effort !== 'none';
  return budget === undefined ? undefined : budget !== 0;
}

/** Returns true if the reasoning of a model can be switched off. */
export function takesOff({ stopsThinking, reasoning, efforts: taken }: ModelTraits): boolean {
  return stopsThinking ?? (reasoning !== 'none' && (taken?.includes('none') ?? true));
}

/** True when a request can keep the model from thinking. */
export function canStopThinking(traits: ModelTraits): boolean {
  return traits.thinksByDefault !== true || takesOff(traits);
}

/** True when the model thinks about a request with this wish. */
export function thinksAbout(wanted: Reasoning | undefined, traits: ModelTraits): boolean {
  const byDefault = traits.thinksByDefault === true;
  if (traits.reasoning === 'none') return byDefault;
  const asks = wanted && asksToThink(wanted);
  if (asks === false) return byDefault && !takesOff(traits);
  return asks ?? byDefault;
}

/** True when the model thinks about a request with functions, which it does in one of its formats alone. */
export function thinksWithFunctions(
  { tools, settings }: Pick<ChatRequest, 'tools' | 'settings'>,
  traits: ModelTraits,
): boolean {
  return (
    traits.functionTools !== undefined &&
    tools.some(({ type }) => type === 'function') &&
    thinksAbout(settings.reasoning, traits)
  );
}

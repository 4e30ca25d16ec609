import type { ChatRequest } from '../../model/chat.ts';
import { canStopThinking, thinksWithFunctions } from '../../model/thinks.ts';
import type { ModelTraits } from '../../model/traits.ts';
import { withoutThinking } from './forced-tools.ts';

/**
 * Switches thinking off for a request with functions that is written in a format in which the model refuses to think about it, because the channel
 * does not speak the other one. What changes is reported.
 */
export function settleFunctionTools(
  request: ChatRequest,
  traits: ModelTraits,
  format: string,
  drop: (path: string) => void,
): ChatRequest {
  if (traits.functionTools === format || request.operation !== 'chat') return request;
  if (!thinksWithFunctions(request, traits) || !canStopThinking(traits)) return request;
  drop('settings.reasoning');
  return { ...request, settings: withoutThinking(request.settings, traits) };
}

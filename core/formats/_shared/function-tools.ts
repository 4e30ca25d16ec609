import type { ChatRequest } from '../../model/chat.ts';
import { canStopThinking, thinksWithFunctions } from '../../model/thinks.ts';
import type { ModelTraits } from '../../model/traits.ts';
import { withoutThinking } from './forced-tools.ts';

/**
 * Switches reasoning off for a request with functions, if the model does not support both in this format and the channel does not support
 * its other format. Reports the change.
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

import { isChat, estimateInput, estimateTokens, type GatewayRequest, type ModelTraits } from 'sluice';

/** What is filled in, where a limit must be, for models whose own nobody knows: with less an answer would be of no use. */
const leastRoom = 8192;

/** How many times the first guess at its tokens an input may come to. */
const safety = 2;

/**
 * The model's traits for a request without an output limit. A format that requires one fills in the model's: with a long input it is less
 * than the model could give, as providers refuse a limit for which the context has no room. `leftOut`: bytes of texts that are not in the
 * request.
 */
export function withRoom(request: GatewayRequest, traits: ModelTraits, leftOut = 0): ModelTraits {
  const { inputLimit, outputLimit } = traits;
  if (inputLimit === undefined || outputLimit === undefined || outputLimit <= leastRoom) return traits;
  if (!isChat(request) || request.operation !== 'chat' || request.settings.maxOutput !== undefined)
    return traits;
  const room = inputLimit - safety * (estimateInput(request) + estimateTokens(leftOut));
  return room >= outputLimit ? traits : { ...traits, outputLimit: Math.max(leastRoom, room) };
}

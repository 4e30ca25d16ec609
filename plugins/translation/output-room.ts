import { isChat, estimateInput, estimateTokens, type GatewayRequest, type ModelTraits } from 'sluice';

/** Output limit for models whose own limit is unknown, where a limit is required. With less a response would be useless. */
const leastRoom = 8192;

/** Safety factor: an input may have this many times the estimated tokens. */
const safety = 2;

/**
 * Returns the model's traits for a request without an output limit. A format that requires one fills in the model's: with a long input it is less
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

/** Refuses or reduces an output limit above what the model can give. */
import { GatewayError, chatOutlineOf, type ChatRequest, type ModelTraits } from 'sluice';
import type { Call, Target } from 'sluice/internal';
import type { TranslationOptions } from './options.ts';

type Chosen = Pick<TranslationOptions, 'outputLimit'>;

/**
 * Throws 400 for a request of a messages client for more tokens than the model can give, because that format says that `max_tokens` must not exceed
 * the model's limit. In the other formats the provider decides.
 */
export function refuseAboveLimit(call: Call, { traits }: Target, chosen: Chosen): void {
  if (chosen.outputLimit !== 'refuse' || call.operation !== 'chat' || call.codec.format !== 'messages')
    return;
  if (traits.statesOutputLimit !== true || raisesLimit(call)) return;
  const { maxOutput } = chatOutlineOf(call).settings;
  const limit = limitBelow(maxOutput, traits);
  if (limit === undefined) return;
  throw new GatewayError(
    'invalid_value',
    `max_tokens: ${maxOutput} > ${limit}, which is the maximum allowed number of output tokens for ${call.askedModel}.`,
    { param: 'max_tokens' },
  );
}

/** Lowers the limit of a request to the model's, where the operator wants that, and reports it. */
export function clampOutput(
  request: ChatRequest,
  traits: ModelTraits,
  chosen: Chosen,
  drop: (path: string) => void,
): ChatRequest {
  const { settings } = request;
  const limit = chosen.outputLimit === 'clamp' ? limitBelow(settings.maxOutput, traits) : undefined;
  if (limit === undefined) return request;
  drop('settings.maxOutput');
  return { ...request, settings: { ...settings, maxOutput: limit } };
}

/** Returns the limit of exactly this model, if it is lower than the requested one. */
function limitBelow(
  requested: number | undefined,
  { outputLimit, statesOutputLimit }: ModelTraits,
): number | undefined {
  if (statesOutputLimit !== true || outputLimit === undefined || requested === undefined) return undefined;
  return requested > outputLimit ? outputLimit : undefined;
}

/** Returns true when a beta of Anthropic raises the limit: `output-128k-2025-02-19` (`AnthropicBeta` of @anthropic-ai/sdk). */
function raisesLimit({ wire }: Call): boolean {
  return String(wire.headers['anthropic-beta'] ?? '').includes('output-');
}

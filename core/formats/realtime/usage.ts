/** Decodes usage of realtime responses and transcriptions: tokens by modality, or seconds. */
import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import type { Usage } from '../../model/usage.ts';
import { byModalityIn } from '../_shared/usage.ts';
import { formatName } from './wire.ts';

/** Decodes the usage of a response or a transcription; further details are kept in `raw`. Undefined if there is none. */
export function readUsage(value: JsonValue | undefined): Usage | undefined {
  if (!isObject(value)) return undefined;
  const input = count(value.input_tokens);
  const output = count(value.output_tokens);
  const seconds = count(value.seconds);
  const cacheRead = count(within(value.input_token_details, 'cached_tokens'));
  const reasoning = count(within(value.output_token_details, 'reasoning_tokens'));
  const inputDetails = value.input_token_details;
  return {
    input,
    output,
    cacheRead,
    cacheWrite: 0,
    reasoning,
    ...byModalityIn(
      {
        input: inputDetails,
        cached: within(inputDetails, 'cached_tokens_details'),
        output: value.output_token_details,
      },
      { input, output, cacheRead },
    ),
    ...(seconds === 0 ? {} : { units: { seconds } }),
    format: formatName,
    raw: value,
  };
}

/** Maximum count, more than any session uses: limits the cost of a provider's wrong figures. */
const most = 1e9;

/** Decodes a count of a provider; 0 if there is none or it is invalid. */
export function count(value: JsonValue | undefined): number {
  return typeof value === 'number' && value > 0 ? Math.min(most, value) : 0;
}

function within(value: JsonValue | undefined, member: string): JsonValue | undefined {
  return isObject(value) ? (value as JsonObject)[member] : undefined;
}

import type { Call } from '../sdk/call.ts';
import { GatewayError } from '../sdk/errors.ts';
import type { Candidate, Catalog } from './catalog.ts';

/** The channels that can do what the call wants and that it may go to; 503 when there is none. */
export function able(call: Call, catalog: Catalog): readonly Candidate[] {
  const candidates = catalog.candidates(call.model, call.operation);
  const { affinity } = call.edits;
  if (candidates.length === 0) {
    throw catalog.candidates(call.model).length === 0
      ? new GatewayError(
          'no_available_channel',
          `No channel serves the model "${call.model}". GET /v1/models lists what there is.`,
          // One that is switched off may come back; a name that is listed nowhere is a mistake, which SDKs would make three times.
          { param: 'model', retryable: catalog.serves(call.model) },
        )
      : new GatewayError(
          'endpoint_not_supported',
          `The channel for the model "${call.model}" does not support ${call.wire.path}.`,
          { param: 'model' },
        );
  }
  if (affinity?.only === true && !candidates.some(({ channel }) => channel.id === affinity.channel)) {
    throw new GatewayError(
      'no_available_channel',
      `The model "${call.model}" is no longer served where this conversation began.`,
      { param: 'model', retryable: catalog.channels.some(({ id }) => id === affinity.channel) },
    );
  }
  return candidates;
}

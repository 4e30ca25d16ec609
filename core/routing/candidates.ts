import type { Call } from '../sdk/call.ts';
import { clientCredentialOf, missingCredential } from '../sdk/client-credential.ts';
import { GatewayError } from '../sdk/errors.ts';
import { addressesOf, refusedAddress } from '../upstream/addresses/index.ts';
import type { Candidate, Catalog } from './catalog.ts';

/** Returns the channels that serve the call's model and operation and that the call may use. Throws 503 if there are none. */
export function findCandidates(call: Call, catalog: Catalog): readonly Candidate[] {
  const candidates = allowed(call, catalog.candidates(call.model, call.operation));
  const { affinity } = call.edits;
  if (candidates.length === 0) {
    throw catalog.candidates(call.model).length === 0
      ? new GatewayError(
          'no_available_channel',
          `No channel serves the model "${call.model}". GET /v1/models lists the available models.`,
          // A disabled channel may be enabled again, so that a retry may succeed. An unknown name stays unknown, and SDKs must not retry it.
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
      `The model "${call.model}" is no longer served by the channel where this conversation began.`,
      { param: 'model', retryable: catalog.channels.some(({ id }) => id === affinity.channel) },
    );
  }
  return reading(call, candidates);
}

/** Returns the channels that may use the addresses in the request. Throws 403 if there are none. */
function reading(call: Call, candidates: readonly Candidate[]): readonly Candidate[] {
  const addresses = addressesOf(call);
  if (addresses.length === 0) return candidates;
  const { affinity } = call.edits;
  const possible =
    affinity?.only === true
      ? candidates.filter(({ channel }) => channel.id === affinity.channel)
      : candidates;
  let refused: GatewayError | undefined;
  const fit = possible.filter(({ channel }) => {
    const error = refusedAddress(addresses, channel);
    refused ??= error;
    return error === undefined;
  });
  if (fit.length === 0 && refused !== undefined) throw refused;
  return fit;
}

/**
 * Returns the channels that match the credential of the client. With a credential: the channels of one provider that accept it, because it
 * is not valid at others. Without: the channels that need none. Throws 401 if only channels that need a credential are left.
 */
function allowed(call: Call, candidates: readonly Candidate[]): readonly Candidate[] {
  const first = forwardsIn(candidates);
  if (first === undefined) return candidates;
  const has = clientCredentialOf(call) !== undefined;
  const fit = candidates.filter(({ channel }) => channel.forwards === (has ? first : undefined));
  if (fit.length === 0) throw missingCredential(call.model);
  return fit;
}

/** First provider of each list of candidates to which credentials are forwarded. A cache, because lists are reused and may be long. */
const providers = new WeakMap<readonly Candidate[], { readonly first: string | undefined }>();

function forwardsIn(candidates: readonly Candidate[]): string | undefined {
  let known = providers.get(candidates);
  if (known === undefined) {
    const first = candidates.find(({ channel }) => channel.forwards !== undefined)?.channel.forwards;
    providers.set(candidates, (known = { first }));
  }
  return known.first;
}

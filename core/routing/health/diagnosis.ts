/** Classifies a failed attempt by its meaning for the health of its key and model. */
import { maskSecrets } from '../../log.ts';
import type { GatewayError } from '../../sdk/errors.ts';
import { upstreamFailureOf } from '../../sdk/upstream-failure.ts';

/** Meaning of a failed attempt for its key and model. */
export interface Diagnosis {
  /**
   * `fine`: the provider responded, and the client's request was invalid. `nothing`: no information about the target. `failure`: counts against
   * the key. `refused`: the provider rejects the key. `unknown`: the provider does not have the model. `patience`: rate limit of the model.
   */
  readonly says: 'fine' | 'nothing' | 'failure' | 'refused' | 'unknown' | 'patience';
  /** Milliseconds that the provider asks clients to wait. */
  readonly patience?: number;
}

const fine: Diagnosis = { says: 'fine' };
const nothing: Diagnosis = { says: 'nothing' };
const failure: Diagnosis = { says: 'failure' };
const refused: Diagnosis = { says: 'refused' };

/** Returns the diagnosis of an error. */
export function diagnose(error: GatewayError): Diagnosis {
  const { code, origin } = error;
  // The provider had closed the idle connection before the request was sent. That is normal, and no failure.
  if (code === 'client_closed_request' || error.staleConnection) return nothing;
  const fault = upstreamFailureOf(error)?.fault;
  const requestedWait = error.retryAfter === undefined ? {} : { patience: error.retryAfter * 1000 };
  switch (fault) {
    case 'credentials':
    case 'no-credit':
      return refused;
    case 'not-found':
      return missingThing(upstreamFailureOf(error)?.message ?? '');
    case 'rate-limit':
      return { says: 'patience', ...requestedWait };
    case 'overloaded':
    case 'timeout':
    case 'failed':
      return { says: 'failure', ...requestedWait };
    case undefined:
      break;
    default:
      return fine;
  }
  if (code === 'upstream_error' || code === 'upstream_cut' || code === 'upstream_timeout') return failure;
  if (origin === 'gateway') return nothing;
  if (origin === 'client') return fine;
  if (code === 'rate_limit_exceeded') return { says: 'patience', ...requestedWait };
  return error.status >= 500 ? { says: 'failure', ...requestedWait } : fine;
}

/** Classifies a 404: the model is missing, the address is wrong, or an object is missing that the client named by its id. */
function missingThing(message: string): Diagnosis {
  if (/\b(models?|deployments?|engines?)\b/i.test(message)) return { says: 'unknown' };
  return /^\W*(not found\W*)?$/i.test(message) ? failure : fine;
}

/** Maximum number of characters of a failure's message. */
const longestMessage = 500;

/** Returns the provider's own message, if there is one. Clients must not see it, operators must. */
export function sentenceOf(error: GatewayError): string {
  const own = upstreamFailureOf(error)?.message;
  return maskSecrets(own === undefined || own === '' ? error.message : own).slice(0, longestMessage);
}

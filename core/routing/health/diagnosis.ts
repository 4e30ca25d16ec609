/** Classifies a failed attempt by what it says about the health of its key and model. */
import { maskSecrets } from '../../log.ts';
import type { GatewayError } from '../../sdk/errors.ts';
import { upstreamFailureOf } from '../../sdk/upstream-failure.ts';

/** Meaning of a failed attempt for its key and model. */
export interface Diagnosis {
  /**
   * `fine`: it answered, and the mistake was the caller's. `nothing`: it says nothing about the place. `failure`: it counts against the
   * key. `refused`: the key is of no use. `unknown`: the model is not known there. `patience`: the model is asked for too often.
   */
  readonly says: 'fine' | 'nothing' | 'failure' | 'refused' | 'unknown' | 'patience';
  /** Milliseconds of patience that the provider asked for. */
  readonly patience?: number;
}

const fine: Diagnosis = { says: 'fine' };
const nothing: Diagnosis = { says: 'nothing' };
const failure: Diagnosis = { says: 'failure' };
const refused: Diagnosis = { says: 'refused' };

/** Returns the diagnosis of an error. */
export function diagnose(error: GatewayError): Diagnosis {
  const { code, origin } = error;
  // A connection that had been closed unseen before anything was sent: everybody's connections end like that.
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

/** What is not there: the model, the whole place (a wrong address), or something that a caller named by its id, which is its own affair. */
function missingThing(message: string): Diagnosis {
  if (/\b(models?|deployments?|engines?)\b/i.test(message)) return { says: 'unknown' };
  return /^\W*(not found\W*)?$/i.test(message) ? failure : fine;
}

/** Maximum number of characters of a failure's message. */
const longestMessage = 500;

/** The provider's own sentence where it gave one: a client may not see it, the operator must. */
export function sentenceOf(error: GatewayError): string {
  const own = upstreamFailureOf(error)?.message;
  return maskSecrets(own === undefined || own === '' ? error.message : own).slice(0, longestMessage);
}

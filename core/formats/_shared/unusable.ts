import { GatewayError } from '../../sdk/errors.ts';

/** 502: what a provider sent is not what was asked for. `what` goes on from "The upstream": `sent no answer`. */
export function unusable(what: string, cause?: unknown): GatewayError {
  return new GatewayError('upstream_error', `The upstream ${what}.`, {
    origin: 'upstream',
    ...(cause === undefined ? {} : { cause }),
  });
}

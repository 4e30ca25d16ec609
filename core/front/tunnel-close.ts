import type { ErrorCode, GatewayError } from '../sdk/errors.ts';

/** Policy: whoever opened the session may not, or not now. */
const refused = 1008;

/** The close codes of failures of ours or of the provider's; any other one is 1011. */
const codes: Partial<Record<ErrorCode, number>> = {
  insufficient_quota: refused,
  rate_limit_exceeded: refused,
  invalid_api_key: refused,
  expired_api_key: refused,
  disabled_api_key: refused,
  forbidden: refused,
  model_not_allowed: refused,
  websocket_connection_limit_reached: 1000,
  server_is_overloaded: 1013,
};

/** The close code that tells a client of a failure. A gateway that goes away says so. */
export function closeCodeOf({ code, origin }: GatewayError): number {
  if (code === 'server_is_overloaded' && origin === 'gateway') return 1001;
  return codes[code] ?? 1011;
}

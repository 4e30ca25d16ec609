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

/** Returns the WebSocket close code for an error: 1001 (going away) when the gateway is stopping, else the code of the table, or 1011. */
export function closeCodeOf({ code, origin }: GatewayError): number {
  if (code === 'server_is_overloaded' && origin === 'gateway') return 1001;
  return codes[code] ?? 1011;
}

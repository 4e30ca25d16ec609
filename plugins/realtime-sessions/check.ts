import { GatewayError, type ApiKeys } from '#sluice';
import type { Session } from './session.ts';

/** Ends a session whose API key is no longer valid. */
export function checkSession(session: Session, apiKeys: ApiKeys): void {
  const { key } = session;
  if (key === undefined) return;
  const found = apiKeys.current(key);
  switch (found?.state) {
    case 'valid':
      session.key = found.key;
      return;
    case 'disabled':
      session.fail(new GatewayError('disabled_api_key', 'The API key of the session was switched off.'));
      return;
    case 'expired':
      session.fail(new GatewayError('expired_api_key', 'The API key of the session has expired.'));
      return;
    default:
      session.fail(new GatewayError('invalid_api_key', 'The API key of the session was revoked.'));
  }
}

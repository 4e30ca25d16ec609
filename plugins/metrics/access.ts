import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { GatewayError, addressList } from 'sluice';
import { createClientAddress, plainAddress } from 'sluice/internal';

/** Addresses that are no part of the Internet: this machine, private networks, links, and networks between carriers and their customers. */
const inside = addressList([
  '127.0.0.0/8',
  '10.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '169.254.0.0/16',
  '100.64.0.0/10',
  '::1',
  'fc00::/7',
  'fe80::/10',
]);

/** What a proxy says of whom it speaks for. */
const forwarding = ['x-forwarded-for', 'forwarded', 'x-real-ip', 'via'] as const;

/**
 * Decides who may read the metrics: with a token who sends it, from wherever. Without one who asks from a private address; somebody
 * behind a proxy that is not trusted may be anybody.
 */
export function createAccess(
  token: string | undefined,
  trustedProxies: readonly string[],
): (request: IncomingMessage) => void {
  if (token !== undefined) {
    const wanted = digest(token);
    return ({ headers }) => {
      const [, sent = ''] = /^Bearer +(\S+)$/i.exec(headers.authorization ?? '') ?? [];
      if (timingSafeEqual(digest(sent), wanted)) return;
      throw new GatewayError('login_required', 'The metrics ask for their token: Authorization: Bearer …', {
        headers: { 'www-authenticate': 'Bearer' },
      });
    };
  }
  const trusted = addressList(trustedProxies);
  const addressOf = createClientAddress(trustedProxies);
  return (request) => {
    const { headers, socket } = request;
    const isTold = forwarding.some((name) => headers[name] !== undefined);
    const isBelieved = !isTold || trusted.has(plainAddress(socket.remoteAddress ?? ''));
    if (isBelieved && inside.has(addressOf(request))) return;
    throw new GatewayError(
      'forbidden',
      'The metrics are for private addresses alone, unless the operator sets a token for them.',
    );
  };
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

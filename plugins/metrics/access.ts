import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { addressList, GatewayError, type PluginTools } from 'sluice';

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

/**
 * Decides who may read the metrics: with a token who sends it, from wherever. Without one who asks from a private address; somebody
 * behind a proxy that is not trusted may be anybody.
 */
export function createAccess(
  token: string | undefined,
  addressOf: PluginTools['clientAddress'],
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
  return (request) => {
    const { ip, isCertain } = addressOf(request);
    if (isCertain && inside.has(ip)) return;
    throw new GatewayError(
      'forbidden',
      'Only private IP addresses can read the metrics. To allow others, set the option "token" of the plugin "metrics".',
    );
  };
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

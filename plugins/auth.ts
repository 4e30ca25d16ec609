import { z } from 'zod';
import { caller, definePlugin, GatewayError, type ApiKeys, type Rates, type Wire } from '#sluice';
import { allowsAddress } from './_addresses.ts';
import { readCredentials, removeCredentials } from './_credentials.ts';
import { countFailures, networkOf } from './_failures.ts';

/**
 * A caller without a valid API key gets 401, one from an address that its key does not allow 403. A key is accepted in every public style
 * on every endpoint; of several the first in a fixed order counts, and no other is tried. Nobody behind this plugin sees the credential.
 *
 * Whoever sends too many wrong keys gets 429 for each that follows within the minute, which says nothing of them. A valid key is let
 * through all the same: somebody else behind the same address may be the one who guesses.
 */
export default definePlugin({
  name: 'auth',
  stage: 'identify',
  options: z.strictObject({
    /** Wrong keys that one address may send within a minute, counted by all who share rates. 0 lets any number be tried. */
    failures: z.int().min(0).default(20),
  }),
  setup({ failures }, { apiKeys, rates }) {
    const check = failures === 0 ? undefined : createCheck(failures, rates);
    return function auth(call, next) {
      const [secret] = readCredentials(call.wire);
      const unreadable = secret === undefined && hasOtherAuthorization(call.wire);
      removeCredentials(call.wire);
      if (secret === undefined) throw refusal('missing_api_key', unreadable ? notBearer : nothingSent);
      const found = apiKeys.find(secret);
      if (found?.state !== 'valid') {
        const refused = invalid(found);
        if (check === undefined) throw refused;
        return check(call.wire.ip).then(() => Promise.reject(refused));
      }
      if (!allowsAddress(found.key, call.wire.ip)) {
        throw new GatewayError('forbidden', 'This API key may not be used from your address.');
      }
      call.set(caller, found.key);
      return next(call);
    };
  },
});

/** Counts a wrong key from an address. Rejects with 429 when there were too many: here, or elsewhere as long as the shared count answers. */
function createCheck(most: number, rates: Rates): (address: string) => Promise<void> {
  const here = countFailures(most);
  return async (address) => {
    // A flood is refused without a question to anybody.
    const wait = here.wait(address);
    if (wait > 0) throw tooMany(wait);
    here.count(address);
    const subject = `wrong-keys:${networkOf(address)}`;
    const { allowed, degraded, retryMs } = await rates.take([{ subject, limit: most, cost: 1 }]);
    if (!allowed && degraded !== true) throw tooMany(retryMs);
  };
}

const nothingSent =
  'This request carries no API key. Send yours as "Authorization: Bearer YOUR_KEY", or in an x-api-key or x-goog-api-key header.';
const notBearer =
  'The Authorization header of this request is not of the form "Bearer YOUR_KEY". Put the word Bearer and a space before your API key.';

function hasOtherAuthorization({ headers }: Wire): boolean {
  return headers.authorization !== undefined && !/^\s*(bearer\s*)?$/i.test(headers.authorization);
}

/** Client libraries tell a wrong key by these words from any other mistake. */
const beginning = 'Incorrect API key provided';

function invalid(found: ReturnType<ApiKeys['find']>): GatewayError {
  if (found?.state === 'disabled') {
    return refusal(
      'disabled_api_key',
      `${beginning}: it is switched off. Ask whoever runs this gateway to switch it on again.`,
    );
  }
  if (found?.state === 'expired') {
    const day = new Date(found.key.expiresAt ?? 0).toISOString().slice(0, 10);
    return refusal(
      'expired_api_key',
      `${beginning}: it expired on ${day}. Ask whoever runs this gateway for a new one.`,
    );
  }
  return refusal(
    'invalid_api_key',
    `${beginning}: it is not known here. Check that it was copied whole and belongs to this gateway.`,
  );
}

function tooMany(wait: number): GatewayError {
  const retryAfter = Math.max(1, Math.ceil(wait / 1_000));
  return new GatewayError(
    'rate_limit_exceeded',
    `Too many wrong API keys came from your address. Try again in ${retryAfter} s.`,
    { retryAfter },
  );
}

function refusal(
  code: 'missing_api_key' | 'invalid_api_key' | 'expired_api_key' | 'disabled_api_key',
  sentence: string,
): GatewayError {
  return new GatewayError(code, sentence, { headers: { 'www-authenticate': 'Bearer' } });
}

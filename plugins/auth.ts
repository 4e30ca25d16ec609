import { z } from 'zod';
import {
  caller,
  definePlugin,
  GatewayError,
  InFlight,
  adminTokenPrefix,
  onDetached,
  setClientCredential,
  type ApiKey,
  type ApiKeys,
  type Call,
  type FoundApiKey,
  type Next,
  type PluginTools,
  type Wire,
} from 'sluice';
import { allowsAddress } from './_addresses.ts';
import { readClientCredential, readCredentials, readGatewayKey, removeCredentials } from './_credentials.ts';
import { countFailures, growingDelay, HeldAnswers, networkOf } from './_failures.ts';

/** First and maximum delay of a response to a wrong key, in milliseconds. */
const delays = { first: 100, longest: 2_000 };

/** Interval in milliseconds at which the keys of running calls are checked. Together with reading changes this takes less than a second. */
const lookEvery = 250;

/**
 * Requires a valid API key. A caller without one gets 401; a caller from an IP address that its key does not allow gets 403. Every endpoint
 * accepts keys in the headers of all public APIs. If a request has several, the first in a fixed order counts and no other is tried. Later
 * plugins and providers do not see the key.
 *
 * A key in an `x-sluice-key` header takes precedence. Another credential of the same request is then meant for a provider: only channels
 * with `credentials: 'client'` receive it.
 *
 * When a key is deleted, switched off or expires, its running calls end with an error.
 *
 * After too many wrong keys from one IP address within a minute, each further refusal is delayed longer. Valid keys from that address are
 * not delayed, because several clients may share it.
 */
export default definePlugin({
  name: 'auth',
  stage: 'identify',
  options: z.strictObject({
    /**
     * Number of wrong keys from one IP address within a minute, in all gateways that share rates, after which responses to wrong keys are
     * delayed. 0: never delayed.
     */
    failures: z.int().min(0).default(20),
  }),
  setup({ failures }, tools) {
    const { apiKeys } = tools;
    const slowDown = failures === 0 ? undefined : createDelay(failures, tools);
    const watch = watchKeys(tools);
    const enter = (call: Call, next: Next, secret: string | undefined, found?: FoundApiKey) => {
      const unreadable = secret === undefined && hasOtherAuthorization(call.wire);
      removeCredentials(call.wire);
      if (secret === undefined) throw refusal('missing_api_key', unreadable ? notBearer : nothingSent);
      // Set before the key is checked, because refusals are recorded with their key.
      if (found !== undefined) call.set(caller, found.key);
      if (found?.state !== 'valid') {
        const refused =
          secret.startsWith(adminTokenPrefix) && found === undefined ? adminToken() : invalid(found);
        if (slowDown === undefined) throw refused;
        return slowDown(call).then(() => Promise.reject(refused));
      }
      if (!allowsAddress(found.key, call.wire.ip)) {
        throw new GatewayError('forbidden', 'This API key may not be used from your address.');
      }
      watch(call, found.key);
      return next(call);
    };
    const enterWith = (call: Call, next: Next, secret?: string, found?: FoundApiKey): ReturnType<Next> => {
      // Credentials beside an invalid key are dropped.
      const keeping =
        found?.state === 'valid' && readGatewayKey(call.wire) !== undefined
          ? keepCredential(call, apiKeys)
          : undefined;
      return keeping === undefined
        ? enter(call, next, secret, found)
        : keeping.then(() => enter(call, next, secret, found));
    };
    return function auth(call, next) {
      const secret = readGatewayKey(call.wire) ?? readCredentials(call.wire)[0];
      const found = secret === undefined ? undefined : apiKeys.find(secret);
      if (found !== undefined || secret === undefined || apiKeys.isKnown(secret))
        return enterWith(call, next, secret, found);
      return lookUp(secret, apiKeys).then((key) => enterWith(call, next, secret, key));
    };
  },
});

/** Looks up a key that is not in memory. Throws 503 when the database cannot be read. */
async function lookUp(secret: string, apiKeys: ApiKeys, isUse = true): Promise<FoundApiKey | undefined> {
  try {
    return await apiKeys.lookUp(secret, isUse);
  } catch (cause) {
    throw new GatewayError('server_is_overloaded', 'This API key cannot be checked now. Try again soon.', {
      retryAfter: 1,
      cause,
    });
  }
}

/**
 * Leaves what the client has brought for a provider to the channel that it is for. A key of this gateway is never among it: a credential that
 * memory does not know is looked up.
 */
function keepCredential(call: Call, apiKeys: ApiKeys): Promise<void> | undefined {
  let unknown: string | undefined;
  const own = readClientCredential(call.wire, call.format.name, (value) => {
    if (value === call.wire.headers['x-sluice-key'] || apiKeys.find(value, false) !== undefined) return true;
    // A token of the admin API is no provider's either.
    if (value.startsWith(adminTokenPrefix)) return true;
    if (!apiKeys.isKnown(value)) unknown = value;
    return false;
  });
  const keep = (): void => {
    if (own !== undefined) setClientCredential(call, own);
  };
  if (unknown === undefined) {
    keep();
    return undefined;
  }
  return lookUp(unknown, apiKeys, false).then((key) =>
    key === undefined ? keep() : keepCredential(call, apiKeys),
  );
}

/** Counts a wrong key from an address, and waits when there were too many: here, or elsewhere as long as the shared count answers. */
function createDelay(
  most: number,
  { rates, overload, onClose }: Pick<PluginTools, 'rates' | 'overload' | 'onClose'>,
): (call: Call) => Promise<void> {
  const here = countFailures(60_000);
  const held = new HeldAnswers(overload);
  onClose(() => held.close());
  return async (call) => {
    const { ip } = call.wire;
    let over = here.count(ip) - most;
    // A flood is slowed down without a question to anybody.
    if (over <= 0) {
      const subject = `wrong-keys:${networkOf(ip)}`;
      const { allowed, degraded } = await rates.take([{ subject, limit: most, cost: 1 }]);
      if (!allowed && degraded !== true) over = 1;
    }
    await held.hold(call, growingDelay(over, delays.first, delays.longest));
  };
}

interface RunningCall {
  readonly call: Call;
  readonly key: ApiKey;
}

/** Follows the keys of calls as long as they run, and ends those whose key is no longer valid. */
function watchKeys({
  apiKeys,
  onClose,
}: Pick<PluginTools, 'apiKeys' | 'onClose'>): (call: Call, key: ApiKey) => void {
  const running = new InFlight<RunningCall>();
  const timer = setInterval(() => {
    for (const { call, key } of running.values()) {
      const found = apiKeys.current(key);
      if (found?.state !== 'valid') call.fail(ended(found));
    }
  }, lookEvery).unref();
  onClose(() => clearInterval(timer));
  const add = (call: Call, key: ApiKey): void => {
    const node = running.add({ call, key });
    call.onEnd(() => running.remove(node));
  };
  return (call, key) => {
    add(call, key);
    onDetached(call, (own) => add(own, key));
  };
}

/** Returns the error for a call whose key was valid when it began. */
function ended(found: ReturnType<ApiKeys['current']>): GatewayError {
  switch (found?.state) {
    case 'disabled':
      return refusal('disabled_api_key', 'This API key was switched off while the call ran.');
    case 'expired':
      return refusal('expired_api_key', 'This API key has expired while the call ran.');
    default:
      return refusal('invalid_api_key', 'This API key was deleted while the call ran.');
  }
}

const nothingSent =
  'This request has no API key. Send yours as "Authorization: Bearer YOUR_KEY", or in an x-api-key, x-goog-api-key, api-key or x-sluice-key header.';
const notBearer =
  'The Authorization header of this request is not in the form "Bearer YOUR_KEY". Put "Bearer " before your API key.';

function hasOtherAuthorization({ headers }: Wire): boolean {
  return headers.authorization !== undefined && !/^\s*(bearer\s*)?$/i.test(headers.authorization);
}

/** Client libraries tell a wrong key by these words from any other mistake. */
const beginning = 'Incorrect API key provided';

function adminToken(): GatewayError {
  return refusal(
    'invalid_api_key',
    `${beginning}: it is a token of the admin API, which is valid only below /api/admin. Use an API key for models.`,
  );
}

function invalid(found: ReturnType<ApiKeys['find']>): GatewayError {
  if (found?.state === 'disabled') {
    return refusal(
      'disabled_api_key',
      `${beginning}: it is disabled. Ask the operator of this gateway to enable it.`,
    );
  }
  if (found?.state === 'expired') {
    const day = new Date(found.key.expiresAt ?? 0).toISOString().slice(0, 10);
    return refusal(
      'expired_api_key',
      `${beginning}: it expired on ${day}. Ask the operator of this gateway for a new one.`,
    );
  }
  return refusal(
    'invalid_api_key',
    `${beginning}: it is unknown. Check that it is complete and belongs to this gateway.`,
  );
}

function refusal(
  code: 'missing_api_key' | 'invalid_api_key' | 'expired_api_key' | 'disabled_api_key',
  sentence: string,
): GatewayError {
  return new GatewayError(code, sentence, { headers: { 'www-authenticate': 'Bearer' } });
}

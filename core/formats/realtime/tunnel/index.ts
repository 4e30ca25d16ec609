/** Passes the messages of a realtime session in both directions. */
import { GatewayError, missingValue, wrongValue } from '../../../sdk/errors.ts';
import { isObject, type JsonObject } from '../../../model/json.ts';
import { chatErrorBody } from '../../_openai/errors.ts';
import type { EncodedRequest, TunnelRoute } from '../../../sdk/format.ts';
import { namesOf } from './names.ts';
import { RealtimeWatch, TranslationWatch } from './watch.ts';
import {
  betaHeader,
  betaProtocol,
  betaValue,
  clientPath,
  providerPath,
  subprotocol,
  translationClientPath,
  translationProviderPath,
} from '../wire.ts';

type Headers = Readonly<Record<string, string | undefined>>;

/** Sessions over a WebSocket. */
export const tunnel: TunnelRoute = {
  path: clientPath,
  operation: 'realtime',
  protocols: [subprotocol],
  body: readHandshake,
  dial,
  watch: () => new RealtimeWatch(),
  names: namesOf,
  failure(error, requestId) {
    const { error: errorBody } = chatErrorBody(error);
    const eventId = error.details?.event_id;
    return JSON.stringify({
      type: 'error',
      event_id: `event_${requestId}`,
      error: {
        ...(isObject(errorBody) ? errorBody : {}),
        ...(eventId === undefined ? {} : { event_id: eventId }),
      },
    });
  },
};

/**
 * Sessions that translate speech while it is spoken. They have their own events, and the older dialect does not know them:
 * https://developers.openai.com/api/docs/guides/realtime-translation
 */
export const translations: TunnelRoute = {
  ...tunnel,
  path: translationClientPath,
  body: readTranslationHandshake,
  dial: (_body, model) => ({
    path: translationProviderPath,
    query: { model },
    headers: {},
    method: 'GET',
  }),
  watch: () => new TranslationWatch(),
};

/** Returns the query, as a body. A deployment is a model by another name. */
function readHandshake(query: URLSearchParams): JsonObject {
  if (query.has('call_id')) {
    throw new GatewayError(
      'unsupported_parameter',
      'Sideband sessions of a call (call_id) are not supported. Open a session with ?model=….',
      { param: 'call_id' },
    );
  }
  const intent = query.get('intent') ?? '';
  if (intent !== '' && intent !== 'transcription') throw wrongValue('intent', '"transcription", or left out');
  const model = query.get('model') || query.get('deployment') || '';
  if (model === '') {
    if (intent === '') throw missingValue('model');
    throw new GatewayError(
      'missing_required_parameter',
      'Missing required parameter: model. A session that only transcribes names the model that does so: ?intent=transcription&model=….',
      { param: 'model' },
    );
  }
  return intent === '' ? { model } : { model, intent };
}

/** Returns a session at a provider. The first message of a transcription session has its model. */
export function dial({ intent }: JsonObject, model: string, headers: Headers): Omit<EncodedRequest, 'body'> {
  return {
    path: providerPath,
    query: typeof intent === 'string' ? { intent } : { model },
    headers: wantsBeta(headers) ? { [betaHeader]: betaValue } : {},
    method: 'GET',
  };
}

/** Returns true when the client requests the beta version. Sluice does not translate between both versions; the provider must support it. */
function wantsBeta(headers: Headers): boolean {
  const offered = headers['sec-websocket-protocol']?.split(',').map((name) => name.trim()) ?? [];
  return offered.includes(betaProtocol) || headers[betaHeader]?.toLowerCase().includes(betaValue) === true;
}

function readTranslationHandshake(query: URLSearchParams): JsonObject {
  for (const name of ['call_id', 'intent']) {
    if (!query.has(name)) continue;
    throw new GatewayError(
      'unsupported_parameter',
      `Translation sessions do not support ${name}. Open a session with ?model=….`,
      { param: name },
    );
  }
  const model = query.get('model') ?? '';
  if (model === '') throw missingValue('model');
  return { model };
}

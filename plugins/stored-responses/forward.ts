/**
 * Sends a call that continues earlier turns to a provider: by the id of the turn where the provider keeps it, otherwise with all items written
 * out.
 */
import { map, type Observable } from 'rxjs';
import {
  GatewayError,
  startWithEvents,
  chatFormats,
  targetIn,
  type GatewayEvent,
  type JsonObject,
  type Loss,
} from 'sluice';
import type { Call, Next, Target } from 'sluice/internal';
import type { CallEdits, Catalog } from './core-types.ts';
import type { Resolved } from './resolve.ts';

/** Members that the gateway handles itself and that are not sent to providers. */
const ownFields = ['background', 'background_options', 'generate'] as const;

/** Returns true when the target takes requests in the format of the Responses API. */
export function isNative(target: Target): boolean {
  return chatFormats(target).includes('responses');
}

/**
 * Sends a call with all that it refers to. A provider that stores the earlier turns gets the client's own request first. The request with all items
 * written out is sent only when that provider does not know the turns any more or cannot be reached.
 */
export async function forward(
  call: Call,
  resolved: Resolved,
  catalog: Catalog,
  next: Next,
  edits: CallEdits = {},
): Promise<Observable<GatewayEvent>> {
  const { expanded, channel } = resolved;
  if (expanded === undefined) return next(call.with({ ...bodyFor(call.body), ...edits }));
  let affinity: CallEdits = channel === undefined ? {} : { affinity: { channel } };
  if (channel !== undefined && keepsTurns(catalog, call.model, channel)) {
    try {
      return await next(call.with({ ...bodyFor(call.body), ...edits, affinity: { channel, only: true } }));
    } catch (error) {
      if (hasFailed(error)) affinity = {};
      else if (!hasForgotten(error)) throw error;
    }
  }
  // Decoded, because a provider's own reply would not name the earlier response or the conversation that the client named.
  const send = async (all: Expanded): Promise<Observable<GatewayEvent>> => {
    const reply = await next(
      call.with({ ...affinity, decoded: true, ...edits, body: without(all.expanded) }),
    );
    return reply.pipe(map((event) => (event.type === 'loss' ? lossInClientsPlaces(event, all) : event)));
  };
  let all: Expanded = { ...resolved, expanded };
  try {
    try {
      return await send(all);
    } catch (error) {
      const known = hasForgotten(error) ? withoutLostReasoning(all) : undefined;
      if (known === undefined) throw error;
      all = known;
      const { format } = call.codec;
      const loss: Loss = { path: nameOfEarlier(all), kind: 'content', from: format, to: format };
      return startWithEvents([{ type: 'loss', loss }], await send(all));
    }
  } catch (error) {
    throw inClientsPlaces(error, all);
  }
}

/** A resolved request whose body contains what it refers to. */
type Expanded = Resolved & { readonly expanded: JsonObject };

/** Returns the edits that remove the gateway's own members; none where the client's bytes can be sent unchanged. */
function bodyFor(body: JsonObject): CallEdits {
  return ownFields.some((name) => Object.hasOwn(body, name)) ? { body: without(body) } : {};
}

function without(body: JsonObject): JsonObject {
  const { background: _, background_options: __, generate: ___, ...rest } = body;
  return rest;
}

function keepsTurns(catalog: Catalog, model: string, id: string): boolean {
  const keeps = (target: Target): boolean =>
    isNative(target) && targetIn(target, 'responses').traits.keepsResponses !== false;
  return catalog.targets(model).some((target) => target.channel.id === id && keeps(target));
}

/** Error messages of providers that do not know an earlier turn or an item of it. */
const forgotten = /previous.?response|item with id|item_reference|not persisted/i;

/** Returns true when the provider does not know the earlier turns, so that it may respond when all items are written out. */
function hasForgotten(error: unknown): boolean {
  if (!(error instanceof GatewayError)) return false;
  const { code, origin, param, message, cause } = error;
  if (code === 'previous_response_not_found' || param === 'previous_response_id') return true;
  // The 404 for clients has no details of the provider. Its message is in the cause.
  const causeMessage =
    typeof cause === 'object' && cause !== null && 'message' in cause ? String(cause.message) : '';
  return origin === 'upstream' && (forgotten.test(message) || forgotten.test(causeMessage));
}

/** Returns the request without reasoning of earlier turns that is only a reference for its provider; undefined where there is none. */
function withoutLostReasoning(all: Expanded): Expanded | undefined {
  const history = all.history.filter(
    ({ type, encrypted_content: sealed }) => type !== 'reasoning' || typeof sealed === 'string',
  );
  if (history.length === all.history.length) return undefined;
  return { ...all, history, expanded: { ...all.expanded, input: [...history, ...all.input()] } };
}

/** Returns true when the provider could not be reached or failed, so that another one may respond. */
function hasFailed(error: unknown): boolean {
  return error instanceof GatewayError && error.origin !== 'client' && error.retryable;
}

/** Returns the error with paths of the client's own body, because the gateway has inserted earlier items before the client's input. */
export function inClientsPlaces(error: unknown, resolved: Resolved): unknown {
  if (!(error instanceof GatewayError) || error.param === undefined) return error;
  const path = clientPath(error.param, resolved);
  if (path === error.param) return error;
  const { status, origin, retryable, retryAfter, headers, details } = error;
  return new GatewayError(error.code, error.message.replaceAll(error.param, path), {
    param: path,
    status,
    origin,
    retryable,
    headers,
    cause: error,
    ...(retryAfter === undefined ? {} : { retryAfter }),
    ...(details === undefined ? {} : { details }),
  });
}

function lossInClientsPlaces(event: LossEvent, resolved: Resolved): GatewayEvent {
  const path = clientPath(event.loss.path, resolved);
  return path === event.loss.path ? event : { ...event, loss: { ...event.loss, path } };
}

type LossEvent = Extract<GatewayEvent, { readonly type: 'loss' }>;

/** Converts a path into one of the client's body. An item of an earlier turn has the path of the member that names the turn. */
function clientPath(path: string, resolved: Resolved): string {
  const [whole, index] = /^input\[(\d+)\]/.exec(path) ?? [];
  if (whole === undefined) return path;
  const own = Number(index) - resolved.history.length;
  if (own >= 0) return `input[${own}]${path.slice(whole.length)}`;
  return nameOfEarlier(resolved);
}

/** Returns the member that names earlier turns. */
function nameOfEarlier({ conversation }: Resolved): string {
  return conversation === undefined ? 'previous_response_id' : 'conversation';
}

/** Returns a `next` that tries only the targets for which `able` is true. Throws `endpoint_not_supported` where the model has no such target. */
export function only(isSuitable: (target: Target) => boolean, catalog: Catalog, next: Next): Next {
  return async (call) => {
    const targets = catalog.targets(call.model);
    const chosen = targets.filter(isSuitable);
    if (targets.length > 0 && chosen.length === 0) {
      throw new GatewayError(
        'endpoint_not_supported',
        `The channel for the model "${call.model}" does not support ${call.wire.path}: use /v1/chat/completions.`,
        { param: 'model' },
      );
    }
    if (chosen.length === targets.length || call.edits.affinity?.only === true) return next(call);
    let failure: unknown;
    for (const { channel } of chosen) {
      try {
        return await next(call.with({ affinity: { channel: channel.id, only: true } }));
      } catch (error) {
        if (!(error instanceof GatewayError) || error.origin === 'client' || !error.retryable) throw error;
        failure = error;
      }
    }
    throw failure;
  };
}

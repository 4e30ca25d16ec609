/** Adapts a channel that answers chats with events (instead of a provider's bytes) to the interface of a channel. */
import {
  catchError,
  concat,
  concatMap,
  defer,
  EMPTY,
  from,
  mergeMap,
  type Observable,
  type ObservableInput,
} from 'rxjs';
import type { GatewayEvent } from '../model/event.ts';
import type { JsonObject } from '../model/json.ts';
import type { AnswerRequest, AnsweringParts } from './author/answering.ts';
import type { UpstreamRequest } from './channel.ts';
import type { Call } from './call.ts';
import type { ChannelParts } from './author/channel.ts';
import { GatewayError } from './errors.ts';
import { ProviderRefusal } from './json-lines.ts';
import { ReplyShape } from './reply-shape.ts';

/** Parts of such a channel, as the gateway uses them. */
export interface AnsweredParts extends ChannelParts {
  /** See `Channel.events`. */
  events(call: Call, request: UpstreamRequest): Observable<GatewayEvent>;
}

/** Converts the parts that an author declares. `keys` are the channel's. */
export function withEvents(
  { answer, reads = 'chat-completions', ...rest }: AnsweringParts,
  keys: readonly string[],
): AnsweredParts {
  return {
    ...rest,
    speaks: { chat: [reads] },
    open: () => Promise.reject(new Error('A channel that returns events supports only chat.')),
    events: (call, request) => answered(call, request, () => answer(call, requestOf(call, request, keys))),
  };
}

function requestOf(
  call: Call,
  { model, stream, body, headers }: UpstreamRequest,
  keys: readonly string[],
): AnswerRequest {
  const key = keys[call.target?.key.index ?? 0];
  return {
    model,
    stream,
    headers,
    // A plain object, because the author reads it member by member.
    body: JSON.parse(String(body)) as JsonObject,
    ...(key === undefined ? {} : { key }),
  };
}

/**
 * Returns the events of a channel: `answer` with status and headers first, as for every provider, then the response in its order. An error
 * that the channel throws becomes a failure of the provider.
 */
function answered(
  call: Call,
  { model }: UpstreamRequest,
  answer: () => ReturnType<AnsweringParts['answer']>,
): Observable<GatewayEvent> {
  return defer(() => {
    const shape = new ReplyShape(call.id, model);
    let hasBegun = false;
    const begun = (
      status: number,
      headers: ProviderRefusal['headers'],
      events: readonly GatewayEvent[],
    ): readonly GatewayEvent[] => {
      if (hasBegun) return events;
      hasBegun = true;
      return [{ type: 'answer', status, headers }, ...events];
    };
    const end = defer(() => {
      shape.end();
      return EMPTY;
    });
    return concat(sourceOf(answer).pipe(concatMap((event) => begun(200, {}, shape.event(event)))), end).pipe(
      catchError((error: unknown) => {
        if (!(error instanceof ProviderRefusal) || hasBegun)
          throw error instanceof GatewayError ? error : unexpected(error);
        return begun(error.status, error.headers, [{ type: 'bytes', bytes: error.body }]);
      }),
    );
  });
}

/** Returns the events that `answer` returns, awaited where it returns a promise. */
function sourceOf(answer: () => ReturnType<AnsweringParts['answer']>): Observable<GatewayEvent> {
  return defer((): ObservableInput<ObservableInput<GatewayEvent>> => {
    const given = answer();
    return 'then' in given ? given : [given];
  }).pipe(mergeMap((events) => from(events)));
}

function unexpected(error: unknown): GatewayError {
  return new GatewayError('upstream_error', 'The channel failed.', { origin: 'upstream', cause: error });
}

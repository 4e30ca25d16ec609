/** Public types for channels that answer chats with events instead of a provider's bytes. */
import type { Observable } from 'rxjs';
import type { z } from 'zod';
import type { GatewayEvent } from '../../model/event.ts';
import type { JsonObject } from '../../model/json.ts';
import type { Call } from './call.ts';
import type { ChannelOptions, ChannelParts, ChannelSpec, ChannelTools } from './channel.ts';

/**
 * A chat as a channel that answers in events gets it.
 *
 * @example
 * const { messages, temperature } = request.body;
 */
export interface AnswerRequest {
  /** The model's name at the provider. */
  readonly model: string;
  /** True when the client wants a stream. The events are the same. */
  readonly stream: boolean;
  /** The request in the format that `reads` names, adapted to the traits of the model. */
  readonly body: JsonObject;
  /** Lower case: versions and beta flags. Never a client's credential. */
  readonly headers: Readonly<Record<string, string>>;
  /** The key of the channel for this attempt. Absent where the channel has none. */
  readonly key?: string;
}

/**
 * Parts of one instance of a channel kind that answers chats in events, whatever the provider sends.
 *
 * @example
 * const parts: AnsweringParts = {
 *   answer: (call, { model, body }) =>
 *     jsonLines(http.send(call, { url, headers, body: JSON.stringify({ model, chat: body.messages }) })).pipe(concatMap(eventsOfLine)),
 * };
 */
export interface AnsweringParts extends Pick<ChannelParts, 'traits' | 'thinking' | 'listModels'> {
  /** The format of the request that `answer` gets. Default `chat-completions`. */
  readonly reads?: string;
  /**
   * Answers a chat. Deltas are enough: head, starts and ends of blocks are added, and blocks numbered. A reply ends with `finish`, and `usage`
   * where the provider reports it. An error that is thrown counts as the provider's failure, so that another channel may be tried. Stops
   * when it is unsubscribed from, as `tools.http` does by itself.
   */
  readonly answer: (
    call: Call,
    request: AnswerRequest,
  ) =>
    | Observable<GatewayEvent>
    | AsyncIterable<GatewayEvent>
    | Promise<Observable<GatewayEvent> | AsyncIterable<GatewayEvent>>;
}

/**
 * Declaration of a channel kind whose channels answer in events.
 *
 * @example
 * defineChannel({ name: 'mine', models: ['mine-*'], setup: ({ baseUrl }, { http }) => ({ answer: (call, request) => eventsOf(call, request) }) });
 */
export interface AnsweringSpec<Schema extends z.ZodObject> extends Omit<ChannelSpec<Schema>, 'setup'> {
  readonly setup: (options: ChannelOptions & z.output<Schema>, tools: ChannelTools) => AnsweringParts;
}

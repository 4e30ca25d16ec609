import { GatewayError, isObject, type JsonObject, type JsonValue } from 'sluice';
import { LiveEvents, type ErrorSubject } from './events.ts';
import { resultOf, soundInput, turnOf, unsupported, wrong } from './items.ts';
import { LiveReplies } from './replies.ts';
import {
  changedSession,
  inputOf,
  isManual,
  lostSettings,
  newSession,
  setupMessage,
  wrongMember,
  type LiveModel,
} from './settings.ts';
import type { LiveStep } from './step.ts';

/** Session that translates between OpenAI's realtime protocol for the client and Gemini's Live API for the provider. */
export class LiveSession {
  readonly #model: LiveModel;
  readonly #events: LiveEvents;
  readonly #replies: LiveReplies;
  #session: JsonObject;
  /** The settings with which the provider was set up. */
  #setUp: JsonObject | undefined;
  /** Turn that is not sent yet, because the next message determines if it needs a response. */
  #held: JsonObject | undefined;
  /** True while the client speaks in a session in which it marks the end of its turns. */
  #isActive = false;
  /** Sound that was sent and not committed. */
  #hasSound = false;

  constructor(id: string, model: LiveModel) {
    this.#model = model;
    this.#events = new LiveEvents(id);
    this.#session = newSession(`sess_${id}`, model.model);
    this.#replies = new LiveReplies(this.#events, () => this.#session);
  }

  /** The first event of the session. */
  get created(): JsonObject {
    return this.#events.make('session.created', { session: this.#session });
  }

  /** True while a response runs, or the provider waits for results. */
  get isBusy(): boolean {
    return this.#replies.isBusy || this.#isActive;
  }

  /** True once the provider was set up: its settings then stay as they are. */
  get isSetUp(): boolean {
    return this.#setUp !== undefined;
  }

  setup(handle?: string): JsonObject {
    this.#setUp = this.#session;
    return setupMessage(this.#session, this.#model, handle);
  }

  /** Returns the event for an error that leaves the session open. */
  failure(error: GatewayError, eventId: JsonValue | undefined): JsonObject {
    return this.#events.error(error.code, error.message, subjectOf(error.param, eventId));
  }

  fromClient(event: JsonObject): LiveStep {
    const { event_id: eventId } = event;
    try {
      return this.#act(event);
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      return { toClient: [this.failure(error, eventId)] };
    }
  }

  fromProvider(message: JsonObject): LiveStep {
    return this.#replies.read(message);
  }

  #act(event: JsonObject): LiveStep {
    switch (event['type']) {
      case 'session.update':
        return this.#update(event);
      case 'input_audio_buffer.append':
        return this.#append(event['audio']);
      case 'input_audio_buffer.commit':
        return this.#commit();
      case 'input_audio_buffer.clear':
        return this.#clear();
      case 'conversation.item.create':
        return this.#add(event['item']);
      case 'conversation.item.truncate': {
        const { item_id, content_index, audio_end_ms } = event;
        // The provider itself stores its output up to the interruption.
        const truncation = {
          item_id: item_id ?? '',
          content_index: content_index ?? 0,
          audio_end_ms: audio_end_ms ?? 0,
        };
        return { toClient: [this.#events.make('conversation.item.truncated', truncation)] };
      }
      case 'response.create':
        return this.#respond(event);
      case 'response.cancel':
        return { toClient: [...this.#replies.cancel()] };
      default:
        throw new GatewayError(
          'unsupported_parameter',
          `Messages of the type ${JSON.stringify(event['type'] ?? null)} are not available in sessions of this model.`,
          { param: 'type' },
        );
    }
  }

  #update({ session: change, event_id: eventId }: JsonObject): LiveStep {
    if (!isObject(change)) throw wrong('session', 'an object');
    const member = wrongMember(change);
    if (member !== undefined)
      throw new GatewayError('invalid_value', `Invalid value for ${member}.`, { param: member });
    const next = changedSession(this.#session, change);
    if (this.#setUp !== undefined && JSON.stringify(next) !== JSON.stringify(this.#setUp))
      throw new GatewayError(
        'unsupported_parameter',
        'The settings of a session of this model cannot be changed once the conversation has begun. Open a new session.',
        { param: 'session' },
      );
    this.#session = next;
    const events = [this.#events.make('session.updated', { session: next })];
    const lost = lostSettings(change, this.#model.model);
    if (lost.length > 0) events.unshift(this.#lost(lost, eventId));
    return { toClient: events };
  }

  #lost(members: readonly string[], eventId: JsonValue | undefined): JsonObject {
    return this.#events.error(
      'unsupported_parameter',
      `Not available in sessions of this model, and left out: ${members.join(', ')}.`,
      subjectOf(members[0], eventId),
    );
  }

  #append(audio: JsonValue | undefined): LiveStep {
    const sound = soundInput(audio, inputOf(this.#session)['format']);
    const toProvider = [...this.#release(false)];
    if (isManual(this.#session) && !this.#isActive) {
      this.#isActive = true;
      toProvider.push({ realtimeInput: { activityStart: {} } });
    }
    this.#hasSound = true;
    return { toProvider: [...toProvider, sound] };
  }

  #commit(): LiveStep {
    if (!this.#hasSound)
      throw new GatewayError('invalid_value', 'The input audio buffer is empty.', { param: 'type' });
    this.#hasSound = false;
    const events = this.#replies.committed();
    // With turn detection, the end of the sound ends the turn. Without it, the requested response does.
    return isManual(this.#session)
      ? { toClient: events }
      : { toClient: events, toProvider: [{ realtimeInput: { audioStreamEnd: true } }] };
  }

  #clear(): LiveStep {
    if (this.#hasSound) throw unsupported('type', 'Sound that was sent cannot be taken back: it belongs');
    return { toClient: [this.#events.make('input_audio_buffer.cleared', {})] };
  }

  #add(item: JsonValue | undefined): LiveStep {
    if (!isObject(item)) throw wrong('item', 'an object');
    const id = typeof item['id'] === 'string' ? item['id'] : this.#events.newItem();
    const shown = { ...item, id, object: 'realtime.item', status: 'completed' };
    const isResult = item['type'] === 'function_call_output';
    const toProvider = isResult ? [this.#result(item)] : [...this.#release(false)];
    if (!isResult) this.#held = turnOf(item, inputOf(this.#session)['format']);
    const added = this.#events.added(shown);
    return { toProvider, toClient: [added, this.#events.done(shown)] };
  }

  #result({ call_id: callId, output }: JsonObject): JsonObject {
    const response = resultOf(output);
    const name = this.#replies.answered(callId);
    if (name === undefined || typeof callId !== 'string')
      throw new GatewayError(
        'invalid_value',
        'No function was called with this call_id, or its result is no longer wanted.',
        {
          param: 'item.call_id',
        },
      );
    const id = this.#model.refusesCallIds === true ? {} : { id: callId };
    return { toolResponse: { functionResponses: [{ ...id, name, response }] } };
  }

  #respond({ response = {}, event_id: eventId }: JsonObject): LiveStep {
    const requested = isObject(response) ? response : {};
    if (requested['conversation'] === 'none' || requested['input'] !== undefined)
      throw unsupported('response', 'Responses beside the conversation do not belong');
    if (this.#replies.isRunning)
      throw new GatewayError(
        'invalid_value',
        'The conversation already has an active response. Wait until it has ended.',
        {
          param: 'type',
        },
      );
    const lost = Object.keys(requested)
      .filter((name) => !ignoredMembers.has(name))
      .map((name) => `response.${name}`);
    const toClient = lost.length === 0 ? [] : [this.#lost(lost, eventId)];
    return { toClient, toProvider: this.#requestResponse() };
  }

  #requestResponse(): readonly JsonObject[] {
    if (this.#replies.isAwaited) return [];
    if (this.#isActive) {
      this.#isActive = false;
      this.#replies.await();
      return [...this.#release(false), { realtimeInput: { activityEnd: {} } }];
    }
    this.#replies.await();
    return [...this.#release(true)];
  }

  /** Sends the held turn, or without one a request for a response, if one is needed. */
  *#release(turnComplete: boolean): Iterable<JsonObject> {
    const held = this.#held;
    this.#held = undefined;
    if (held === undefined && !turnComplete) return;
    // Models of before 3 answer a turn alone: livekit-plugins-google 1.8.9, `_needs_reply_placeholder`.
    const others = /gemini-(?:live-)?2/.test(this.#model.model)
      ? [{ role: 'user', parts: [{ text: '.' }] }]
      : [];
    yield { clientContent: { turns: held === undefined ? others : [held], turnComplete } };
  }
}

/** Members of `response.create` that have no effect, or request the default. */
const ignoredMembers = new Set(['conversation', 'object', 'metadata']);

function subjectOf(param: string | undefined | null, eventId: JsonValue | undefined): ErrorSubject {
  return { param: param ?? null, eventId: typeof eventId === 'string' ? eventId.slice(0, 512) : null };
}

/** Answers the client events of a realtime session of the demo channel. */
import { isObject, parseObject, type GatewayEvent, type JsonObject, type JsonValue } from 'sluice';
import type { SocketMessage } from 'sluice/channel-kit';
import { RealtimeAnswer } from './realtime-answer.ts';
import { RealtimeConversation, textOf, type Turn } from './realtime-conversation.ts';
import { RealtimeEvents } from './realtime-events.ts';
import { countWords } from './words.ts';

/** Bytes of sound that are one token: a twentieth of a second of 16-bit samples at 24 kHz. */
const audioToken = 2400;
/** Sound that is taken before it must be committed. */
const mostAudio = 64 * 1024 * 1024;

/** State of one session. It echoes the last text, calls tools, and counts tokens. */
export class RealtimeSession {
  readonly #id: string;
  readonly #model: string;
  #session: JsonObject;
  readonly #conversation: RealtimeConversation;
  readonly #events: RealtimeEvents;
  #audioBytes = 0;
  #answers = 0;

  constructor(id: string, model: string) {
    this.#id = id;
    this.#model = model;
    this.#conversation = new RealtimeConversation(id);
    this.#events = new RealtimeEvents(id);
    this.#session = {
      type: 'realtime',
      object: 'realtime.session',
      id: `sess_${id}`,
      model,
      output_modalities: ['audio'],
      instructions: '',
      tools: [],
      tool_choice: 'auto',
      max_output_tokens: 'inf',
      audio: {
        input: { format: { type: 'audio/pcm', rate: 24_000 }, transcription: null, turn_detection: null },
        output: { format: { type: 'audio/pcm', rate: 24_000 }, voice: 'demo' },
      },
    };
  }

  /** Yields the event that opens the session. */
  *begin(): Iterable<GatewayEvent> {
    yield this.#events.create('session.created', { session: this.#session });
  }

  /** Yields the events in response to a message. Throws when a command requests a failure. */
  *answer({ data, binary, close }: SocketMessage): Iterable<GatewayEvent> {
    if (close !== undefined) return;
    const event = binary ? undefined : parseObject(data.toString());
    if (typeof event?.type !== 'string') {
      yield this.#events.error(
        'invalid_json',
        'A message must be a JSON object with a type, in a text frame.',
        event,
      );
      return;
    }
    switch (event.type) {
      case 'session.update':
        if (isObject(event.session))
          this.#session = { ...merged(this.#session, event.session), model: this.#model };
        yield this.#events.create('session.updated', { session: this.#session });
        return;
      case 'input_audio_buffer.append':
        yield* this.#append(event);
        return;
      case 'input_audio_buffer.clear':
        this.#audioBytes = 0;
        yield this.#events.create('input_audio_buffer.cleared', {});
        return;
      case 'input_audio_buffer.commit':
        yield* this.#commit(event);
        return;
      case 'conversation.item.create':
        yield* this.#create(event);
        return;
      case 'conversation.item.retrieve':
      case 'conversation.item.delete':
      case 'conversation.item.truncate':
        yield* this.#onItem(event, event.type);
        return;
      case 'response.create':
        yield* this.#respond(isObject(event.response) ? event.response : {});
        return;
      case 'response.cancel':
        yield this.#events.error(
          'response_cancel_not_active',
          'Cancellation failed: no active response found',
          event,
        );
        return;
      default:
        yield this.#events.error(
          'invalid_value',
          `Invalid value: '${event.type.slice(0, 100)}'.`,
          event,
          'type',
        );
    }
  }

  *#append(event: JsonObject): Iterable<GatewayEvent> {
    const bytes = typeof event.audio === 'string' ? Buffer.byteLength(event.audio, 'base64') : 0;
    if (bytes === 0 || this.#audioBytes + bytes > mostAudio)
      yield this.#events.error(
        'invalid_value',
        'audio must be base64 sound, and not too much of it.',
        event,
        'audio',
      );
    else this.#audioBytes += bytes;
  }

  *#commit(event: JsonObject): Iterable<GatewayEvent> {
    const bytes = this.#audioBytes;
    if (bytes === 0) {
      yield this.#events.error('input_audio_buffer_commit_empty', 'The input audio buffer is empty.', event);
      return;
    }
    this.#audioBytes = 0;
    const audioTokens = Math.ceil(bytes / audioToken);
    const transcript = `${bytes} bytes of sound`;
    const content = [{ type: 'input_audio', transcript: null }];
    const turn = this.#conversation.addItem(
      { type: 'message', role: 'user', content },
      transcript,
      audioTokens,
    );
    yield this.#events.create('input_audio_buffer.committed', {
      item_id: turn.id,
      previous_item_id: this.#conversation.before(turn),
    });
    yield* this.#added(turn);
    if (!isObject(at(this.#session, 'audio', 'input', 'transcription'))) return;
    const usage = {
      type: 'tokens',
      total_tokens: audioTokens + countWords(transcript),
      input_tokens: audioTokens,
      input_token_details: { text_tokens: 0, audio_tokens: audioTokens },
      output_tokens: countWords(transcript),
    };
    const where = { item_id: turn.id, content_index: 0 };
    yield this.#events.create('conversation.item.input_audio_transcription.completed', {
      ...where,
      transcript,
      usage,
    });
  }

  *#create(event: JsonObject): Iterable<GatewayEvent> {
    const { item } = event;
    if (!isObject(item) || typeof item.type !== 'string') {
      yield this.#events.error(
        'missing_required_parameter',
        "Missing required parameter: 'item'.",
        event,
        'item',
      );
      return;
    }
    const text = textOf(item);
    yield* this.#added(this.#conversation.addItem(item, text, text === '' ? 1 : 0));
  }

  *#onItem(event: JsonObject, type: string): Iterable<GatewayEvent> {
    const turn = this.#conversation.find(event.item_id);
    if (turn === undefined) {
      yield this.#events.error('invalid_value', 'There is no item with this id.', event, 'item_id');
      return;
    }
    if (type === 'conversation.item.retrieve') {
      yield this.#events.create('conversation.item.retrieved', { item: turn.item });
    } else if (type === 'conversation.item.delete') {
      this.#conversation.remove(turn);
      yield this.#events.create('conversation.item.deleted', { item_id: turn.id });
    } else {
      const { content_index: content, audio_end_ms: end } = event;
      yield this.#events.create('conversation.item.truncated', {
        item_id: turn.id,
        content_index: content ?? 0,
        audio_end_ms: end ?? 0,
      });
    }
  }

  *#respond(requested: JsonObject): Iterable<GatewayEvent> {
    this.#answers += 1;
    yield* new RealtimeAnswer({
      session: this.#id,
      number: this.#answers,
      model: this.#model,
      settings: this.#session,
      requested,
      conversation: this.#conversation,
      events: this.#events,
    }).give();
  }

  *#added(turn: Turn): Iterable<GatewayEvent> {
    const members = { previous_item_id: this.#conversation.before(turn), item: turn.item };
    yield this.#events.create('conversation.item.added', members);
    yield this.#events.create('conversation.item.done', members);
  }
}

function at(value: JsonValue | undefined, ...path: readonly string[]): JsonValue | undefined {
  return path.reduce<JsonValue | undefined>(
    (found, name) => (isObject(found) ? found[name] : undefined),
    value,
  );
}

/** Objects member by member, anything else as it is given. */
export function merged(old: JsonObject, given: JsonObject): JsonObject {
  const members = Object.entries(given).map(([name, value]) => {
    const before = old[name];
    return [name, isObject(before) && isObject(value) ? merged(before, value) : value];
  });
  return { ...old, ...(Object.fromEntries(members) as JsonObject) };
}

/** Builds the server events of OpenAI's Realtime API for one session over Gemini's Live API, with their ids. */
import type { JsonObject } from 'sluice';

/** Counts the events, items and responses of one session, and builds events. */
export class LiveEvents {
  readonly #session: string;
  #events = 0;
  #items = 0;
  #responses = 0;
  #previous: string | null = null;

  constructor(session: string) {
    this.#session = session;
  }

  make(type: string, members: JsonObject): JsonObject {
    this.#events += 1;
    return { type, event_id: `event_${this.#session}_${this.#events}`, ...members };
  }

  newItem(): string {
    this.#items += 1;
    return `item_${this.#session}_${this.#items}`;
  }

  newResponse(): string {
    this.#responses += 1;
    return `resp_${this.#session}_${this.#responses}`;
  }

  /** Returns an item that is in the conversation now. */
  added(item: JsonObject): JsonObject {
    const previous = this.#previous;
    this.#previous = String(item['id']);
    return this.make('conversation.item.added', { previous_item_id: previous, item });
  }

  done(item: JsonObject, previous: string | null = null): JsonObject {
    return this.make('conversation.item.done', { previous_item_id: previous, item });
  }

  /** Returns an error that leaves the session open. `eventId`: of the client's message that it is about. */
  error(code: string, message: string, { param = null, eventId = null }: ErrorSubject = {}): JsonObject {
    const type = code === 'server_error' ? 'server_error' : 'invalid_request_error';
    return this.make('error', { error: { type, code, message, param, event_id: eventId } });
  }
}

/** Parameter and client event that an error is about. */
export interface ErrorSubject {
  readonly param?: string | null;
  readonly eventId?: string | null;
}

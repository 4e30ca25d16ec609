import type { GatewayEvent, JsonObject } from 'sluice';

/** Creates the numbered messages of a session. */
export class RealtimeEvents {
  readonly #session: string;
  #count = 0;

  constructor(session: string) {
    this.#session = session;
  }

  create(type: string, members: JsonObject): GatewayEvent {
    this.#count += 1;
    const event = { type, event_id: `event_${this.#session}_${this.#count}`, ...members };
    return { type: 'message', data: Buffer.from(JSON.stringify(event)), binary: false };
  }

  /** Creates an error event that refers to the client's message. */
  error(
    code: string,
    message: string,
    about: JsonObject | undefined,
    param: string | null = null,
  ): GatewayEvent {
    const type = code === 'server_error' ? code : 'invalid_request_error';
    const id = typeof about?.event_id === 'string' ? about.event_id : null;
    return this.create('error', { error: { type, code, message, param, event_id: id } });
  }
}

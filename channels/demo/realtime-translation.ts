import { isObject, parseObject, type GatewayEvent, type JsonObject } from 'sluice';
import type { SocketMessage } from 'sluice/channel-kit';
import { RealtimeEvents } from './realtime-events.ts';
import { merged } from './realtime-session.ts';

/** Bytes of a second of 16-bit sound at 24 kHz. */
const second = 48_000;

/** Translation session of the demo: returns the audio unchanged, and reports its duration. */
export class RealtimeTranslation {
  readonly #model: string;
  readonly #events: RealtimeEvents;
  #session: JsonObject;
  #seconds = 0;
  #over = false;

  constructor(id: string, model: string) {
    this.#model = model;
    this.#events = new RealtimeEvents(id);
    this.#session = {
      id: `sess_${id}`,
      type: 'translation',
      model,
      expires_at: Math.floor(Date.now() / 1000) + 3600,
      audio: {
        input: { transcription: null, noise_reduction: null },
        output: { language: 'en' },
      },
    };
  }

  *begin(): Iterable<GatewayEvent> {
    yield this.#events.create('session.created', { session: this.#session });
  }

  *answer({ data, binary, close }: SocketMessage): Iterable<GatewayEvent> {
    if (close !== undefined || this.#over) return;
    const event = (binary ? undefined : parseObject(data.toString())) ?? {};
    switch (event.type) {
      case 'session.update':
        if (isObject(event.session))
          this.#session = { ...merged(this.#session, event.session), model: this.#model };
        yield this.#events.create('session.updated', { session: this.#session });
        return;
      case 'session.input_audio_buffer.append':
        yield* this.#translate(event);
        return;
      case 'session.close':
        this.#over = true;
        yield this.#events.create('session.closed', {
          usage: { input_seconds: this.#seconds, output_seconds: this.#seconds },
        });
        yield { type: 'message', data: Buffer.alloc(0), binary: false, close: 1000 };
        return;
      default:
        yield this.#events.error(
          'invalid_value',
          'A session that translates has no such event.',
          event,
          'type',
        );
    }
  }

  *#translate(event: JsonObject): Iterable<GatewayEvent> {
    const bytes = typeof event.audio === 'string' ? Buffer.byteLength(event.audio, 'base64') : 0;
    if (bytes === 0 || bytes % 2 !== 0) {
      yield this.#events.error('invalid_value', 'audio must be 16-bit sound in base64.', event, 'audio');
      return;
    }
    this.#seconds += bytes / second;
    const position = { elapsed_ms: Math.round(this.#seconds * 1000) };
    yield this.#events.create('session.output_transcript.delta', {
      delta: `${bytes} bytes of sound `,
      ...position,
    });
    yield this.#events.create('session.output_audio.delta', {
      delta: event.audio ?? '',
      channels: 1,
      format: 'pcm16',
      sample_rate: 24_000,
      ...position,
    });
  }
}

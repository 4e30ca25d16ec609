import { isObject, parseObject, type JsonObject, type JsonValue, type Usage } from 'sluice';
import {
  type SocketMessage,
  type SessionWatch,
  appendedLength,
  audioLength,
  leadingType,
} from 'sluice/channel-kit';

/** Maximum amounts that are charged together before a response ends: half of what is reserved. */
const mostSeconds = 30;
const mostItems = 10;

const nothing = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, reasoning: 0 } as const;

/** Messages that tell the settings of a session, or are charged for. Sound is counted by its length, without being parsed. */
const telling: ReadonlySet<string> = new Set([
  'session.created',
  'session.updated',
  'session.update',
  'conversation.item.create',
]);

/**
 * Counts what xAI charges for in a session: time, and a fee for each item of text.
 *
 * - Time is that of the session with `server_vad`, and that of the audio sent and received without turn detection.
 * - Each `conversation.item.create` has the fee, but for those that give the output of a tool or audio.
 *
 * https://docs.x.ai/developers/models/speech-to-speech and https://docs.x.ai/developers/pricing, read 2026-09-30. Tokens are told by
 * responses and cost nothing. An earlier page charged for audio that is sent faster than time passes, so that the higher of the two counts.
 */
export class XaiSessionWatch implements SessionWatch {
  readonly #answers: SessionWatch;
  readonly #now: () => number;
  /** True while the time of the session counts. */
  #isTimed = true;
  /** Durations in seconds. `since` is the last reading of the clock in milliseconds. */
  #since: number | undefined;
  #clock = 0;
  #sentWithClock = 0;
  #audio = 0;
  #charged = 0;
  #items = 0;
  /** Bytes of a second of audio in each direction: https://docs.x.ai/voice-realtime.ws.json */
  #inputRate = 48_000;
  #outputRate = 48_000;

  constructor(answers: SessionWatch, now: () => number = () => performance.now()) {
    this.#answers = answers;
    this.#now = now;
  }

  get unfinished(): Usage | undefined {
    return this.#answers.unfinished;
  }

  get unreported(): Usage | undefined {
    return this.#seconds() > 0 || this.#items > 0 ? { ...nothing, units: this.#take() } : undefined;
  }

  read(message: SocketMessage): Usage | undefined {
    const answer = this.#answers.read(message);
    const { data, binary, close } = message;
    if (close === undefined) {
      const type = binary ? '' : leadingType(data);
      if (binary) this.#received(data.length);
      else if (type === 'response.output_audio.delta' || type === 'response.audio.delta')
        this.#received(audioLength(parseObject(data.toString())?.['delta']));
      else this.#settings(type, data);
    }
    return answer === undefined ? this.#due() : { ...answer, units: this.#take() };
  }

  sent({ data, binary, close }: SocketMessage): Usage | undefined {
    if (close !== undefined) return undefined;
    const type = binary ? '' : leadingType(data);
    if (binary) this.#sent(data.length);
    else if (type === 'input_audio_buffer.append') this.#sent(appendedLength(data));
    else this.#settings(type, data);
    return this.#due();
  }

  #settings(type: string | undefined, data: Buffer): void {
    if (type !== undefined && !telling.has(type)) return;
    const event = parseObject(data.toString());
    if (event === undefined) return;
    const { type: stated, session, item, audio } = event;
    if (stated === 'conversation.item.create') this.#item(isObject(item) ? item : {});
    else if (stated === 'input_audio_buffer.append') this.#sent(audioLength(audio));
    else if (stated === 'session.update' && isObject(session)) this.#formats(session);
    else if ((stated === 'session.created' || stated === 'session.updated') && isObject(session)) {
      this.#formats(session);
      this.#turns(session['turn_detection']);
    }
  }

  #item({ type, content }: JsonObject): void {
    const parts = Array.isArray(content) ? content.filter(isObject) : [];
    const sounds = parts.filter((part) => part['type'] === 'input_audio' || part['type'] === 'audio');
    for (const { audio } of sounds) this.#sent(audioLength(audio));
    if (type !== 'function_call_output' && sounds.length === 0) this.#items += 1;
  }

  #formats({ audio, input_audio_format: input, output_audio_format: output }: JsonObject): void {
    const { input: inside, output: outside } = isObject(audio) ? audio : {};
    const inputRate = rateOf(isObject(inside) ? inside['format'] : input);
    const outputRate = rateOf(isObject(outside) ? outside['format'] : output);
    if (inputRate !== undefined) this.#inputRate = inputRate;
    if (outputRate !== undefined) this.#outputRate = outputRate;
  }

  /** Reads the turn detection that the provider reports, because only that counts. */
  #turns(turns: JsonValue | undefined): void {
    if (turns === undefined) return;
    this.#tick();
    this.#isTimed = isObject(turns) && typeof turns['type'] === 'string';
  }

  #sent(bytes: number): void {
    const seconds = bytes / this.#inputRate;
    if (this.#isTimed) this.#sentWithClock += seconds;
    else this.#audio += seconds;
  }

  #received(bytes: number): void {
    if (!this.#isTimed) this.#audio += bytes / this.#outputRate;
  }

  #tick(): void {
    const now = this.#now();
    if (this.#isTimed && this.#since !== undefined) this.#clock += (now - this.#since) / 1000;
    this.#since = now;
  }

  /** Returns the seconds that were not charged yet. */
  #seconds(): number {
    this.#tick();
    return Math.max(this.#clock, this.#sentWithClock) + this.#audio - this.#charged;
  }

  #due(): Usage | undefined {
    return this.#seconds() >= mostSeconds || this.#items >= mostItems
      ? { ...nothing, units: this.#take() }
      : undefined;
  }

  #take(): NonNullable<Usage['units']> {
    const units = { seconds: this.#seconds(), calls: this.#items };
    this.#charged += units.seconds;
    this.#items = 0;
    return units;
  }
}

/** Returns the bytes of a second of audio in a format of either protocol; undefined where none is named. */
function rateOf(format: JsonValue | undefined): number | undefined {
  const { type, rate } = isObject(format) ? format : { type: format };
  if (type === 'audio/pcmu' || type === 'audio/pcma' || type === 'g711_ulaw' || type === 'g711_alaw')
    return 8000;
  if (type === 'audio/pcm' || type === 'pcm16')
    return typeof rate === 'number' && rate >= 1000 ? 2 * rate : 48_000;
  return undefined;
}

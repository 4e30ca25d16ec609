/** Reads from the messages of a realtime session what it uses. */
import { parseObject } from '../../../json/parse.ts';
import { isObject, type JsonObject } from '../../../model/json.ts';
import type { SocketMessage } from '../../../model/realtime.ts';
import type { Usage } from '../../../model/usage.ts';
import type { SessionWatch } from '../../../sdk/format.ts';
import { count, readUsage } from '../usage.ts';
import { appendedLength, audioLength, leadingType } from '../wire.ts';

const responseDone = 'response.done';
const transcribed = 'conversation.item.input_audio_transcription.completed';
const marks = [`"${responseDone}"`, `"${transcribed}"`] as const;

/** Bytes of base64 audio that are taken for one token: a twentieth of a second of 16-bit samples at 24 kHz. */
const audioBytes = 3200;

/** Maximum number of stored ids of reported responses, by which a response that is reported twice is charged once. */
const remembered = 64;

/** Watches a session: of all messages it parses only those that tell what was used, never audio. */
export class RealtimeWatch implements SessionWatch {
  readonly #reported = new Set<string>();
  #running = 0;
  /** Size of the conversation after the last response: minimum input of the next one. */
  #context = 0;
  #words = 0;
  #audio = 0;

  get unfinished(): Usage | undefined {
    return this.#running > 0 ? this.#seen() : undefined;
  }

  read({ data, binary, close }: SocketMessage): Usage | undefined {
    if (binary || close !== undefined) return undefined;
    const type = leadingType(data);
    if (type === undefined) {
      return marks.some((mark) => data.includes(mark))
        ? this.#usageOf(parseObject(data.toString()))
        : undefined;
    }
    if (type === responseDone || type === transcribed) return this.#usageOf(parseObject(data.toString()));
    if (type === 'response.created') this.#running += 1;
    else if (type.endsWith('.delta') && type.startsWith('response.')) this.#delta(type, data.length);
    return undefined;
  }

  #delta(type: string, bytes: number): void {
    if (type === 'response.output_audio.delta' || type === 'response.audio.delta') this.#audio += bytes;
    else this.#words += 1;
  }

  #usageOf(event: JsonObject | undefined): Usage | undefined {
    if (event === undefined) return undefined;
    if (event.type === transcribed) {
      const { item_id: item, content_index: index } = event;
      return this.#once(`${String(item)} ${String(index)}`) ? readUsage(event.usage) : undefined;
    }
    if (event.type !== responseDone || !isObject(event.response)) return undefined;
    const { id, status, usage } = event.response;
    if (typeof id === 'string' && !this.#once(id)) return undefined;
    // A cancelled response may have no usage although its beginning was sent. A failed response is not charged.
    const used = readUsage(usage) ?? (status === 'failed' ? undefined : this.#seen());
    this.#running = Math.max(0, this.#running - 1);
    this.#words = 0;
    this.#audio = 0;
    if (used !== undefined) this.#context = used.input + used.output;
    return used;
  }

  /** Returns the estimated usage since the end of the last response; undefined if there is none. */
  #seen(): Usage | undefined {
    const output = this.#words + Math.ceil(this.#audio / audioBytes);
    if (this.#running === 0 && output === 0) return undefined;
    return { input: this.#context, output, cacheRead: 0, cacheWrite: 0, reasoning: 0, estimated: true };
  }

  #once(id: string): boolean {
    if (this.#reported.has(id)) return false;
    this.#reported.add(id);
    const [oldest] = this.#reported;
    if (this.#reported.size > remembered && oldest !== undefined) this.#reported.delete(oldest);
    return true;
  }
}

/** As much as is charged for at once: half of what is reserved. */
const mostSeconds = 30;

/** 16-bit samples at 24 kHz, the only sound that is taken over a WebSocket. */
const bytesOfSecond = 48_000;

const appended = 'session.input_audio_buffer.append';
const closed = 'session.closed';

/**
 * Counts the seconds of audio that a client sends for translation, which are all that is charged. The provider sends its own count with the
 * last message: LiteLLM 1.110.2, cost_calculator.py, `_translation_session_seconds`.
 */
export class TranslationWatch implements SessionWatch {
  readonly unfinished = undefined;
  #sent = 0;
  #reported = 0;

  get unreported(): Usage | undefined {
    return this.#sent > this.#reported ? this.#take() : undefined;
  }

  read({ data, binary, close }: SocketMessage): Usage | undefined {
    if (binary || close !== undefined) return undefined;
    const type = leadingType(data);
    if (type === undefined ? !data.includes(`"${closed}"`) : type !== closed) return undefined;
    const event = parseObject(data.toString());
    if (event?.type !== closed) return undefined;
    const seconds = isObject(event.usage) ? event.usage.input_seconds : undefined;
    // Usage that was already reported stays charged, even if the provider's final count is lower.
    if (typeof seconds === 'number') this.#sent = Math.max(this.#reported, count(seconds));
    return this.unreported;
  }

  sent({ data, binary, close }: SocketMessage): Usage | undefined {
    if (binary || close !== undefined) return undefined;
    const type = leadingType(data);
    if (type === appended) this.#sent += appendedLength(data) / bytesOfSecond;
    else if (type === undefined) {
      const event = parseObject(data.toString());
      if (event?.type === appended) this.#sent += audioLength(event.audio) / bytesOfSecond;
    }
    return this.#sent - this.#reported >= mostSeconds ? this.#take() : undefined;
  }

  #take(): Usage {
    const seconds = this.#sent - this.#reported;
    this.#reported = this.#sent;
    return { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, reasoning: 0, units: { seconds } };
  }
}

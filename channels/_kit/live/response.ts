/** Builds the events of one response of OpenAI's Realtime API from the output of Gemini's Live API. */
import { GatewayError, type JsonObject } from 'sluice';
import type { LiveEvents } from './events.ts';

/** Maximum number of characters of one response: more than any model writes at once. */
const mostCharacters = 4 * 1024 * 1024;

/** A function that the model calls. */
export interface LiveCall {
  readonly id: string;
  readonly name: string;
  readonly args: JsonObject;
}

/** Ways in which a response ended. */
export interface LiveEnd {
  readonly status: 'completed' | 'cancelled' | 'incomplete' | 'failed';
  readonly reason?: string;
}

/** State of one response. Each method yields the events that it causes. */
export class LiveResponse {
  readonly id: string;
  readonly #events: LiveEvents;
  readonly #modality: 'audio' | 'text';
  readonly #output: JsonObject[] = [];
  /** Id of the message item that is open. */
  #item: string | undefined;
  #text = '';

  constructor(events: LiveEvents, modality: 'audio' | 'text') {
    this.id = events.newResponse();
    this.#events = events;
    this.#modality = modality;
  }

  *begin(): Iterable<JsonObject> {
    yield this.#events.make('response.created', { response: this.#shown('in_progress') });
  }

  *audio(base64: string): Iterable<JsonObject> {
    yield* this.#open();
    yield this.#delta('response.output_audio.delta', base64);
  }

  /** Adds text of the model, or the transcript of its speech. */
  *text(delta: string): Iterable<JsonObject> {
    yield* this.#open();
    this.#text += delta;
    if (this.#text.length > mostCharacters)
      throw new GatewayError('upstream_error', 'The response is longer than any model writes.', {
        origin: 'upstream',
      });
    const type =
      this.#modality === 'audio' ? 'response.output_audio_transcript.delta' : 'response.output_text.delta';
    yield this.#delta(type, delta);
  }

  *call({ id, name, args }: LiveCall): Iterable<JsonObject> {
    yield* this.#close('completed');
    const text = JSON.stringify(args);
    const item = {
      id: this.#events.newItem(),
      object: 'realtime.item',
      type: 'function_call',
      name,
      call_id: id,
    };
    const position = { response_id: this.id, output_index: this.#output.length };
    const begun = { ...item, status: 'in_progress', arguments: '' };
    const whole = { ...item, status: 'completed', arguments: text };
    yield this.#events.make('response.output_item.added', { ...position, item: begun });
    yield this.#events.added(begun);
    const inside = { ...position, item_id: item.id, call_id: id };
    yield this.#events.make('response.function_call_arguments.delta', { ...inside, delta: text });
    yield this.#events.make('response.function_call_arguments.done', { ...inside, name, arguments: text });
    yield this.#events.done(whole);
    yield this.#events.make('response.output_item.done', { ...position, item: whole });
    this.#output.push(whole);
  }

  *end({ status, reason }: LiveEnd, usage: JsonObject): Iterable<JsonObject> {
    yield* this.#close(status === 'completed' ? 'completed' : 'incomplete');
    const details =
      status === 'completed' ? null : { type: status, ...(reason === undefined ? {} : { reason }) };
    const response = { ...this.#shown(status), status_details: details, output: this.#output, usage };
    yield this.#events.make('response.done', { response });
  }

  #shown(status: string): JsonObject {
    return {
      object: 'realtime.response',
      id: this.id,
      status,
      status_details: null,
      output: [],
      output_modalities: [this.#modality],
      usage: null,
    };
  }

  *#open(): Iterable<JsonObject> {
    if (this.#item !== undefined) return;
    this.#item = this.#events.newItem();
    this.#text = '';
    const item = this.#message('in_progress', []);
    yield this.#events.make('response.output_item.added', {
      response_id: this.id,
      output_index: this.#output.length,
      item,
    });
    yield this.#events.added(item);
    const part = this.#modality === 'audio' ? { type: 'audio', transcript: '' } : { type: 'text', text: '' };
    yield this.#events.make('response.content_part.added', { ...this.#position(), part });
  }

  *#close(status: 'completed' | 'incomplete'): Iterable<JsonObject> {
    if (this.#item === undefined) return;
    const text = this.#text;
    const position = this.#position();
    const isAudio = this.#modality === 'audio';
    if (isAudio) {
      yield this.#events.make('response.output_audio.done', position);
      yield this.#events.make('response.output_audio_transcript.done', { ...position, transcript: text });
    } else yield this.#events.make('response.output_text.done', { ...position, text });
    const part = isAudio ? { type: 'audio', transcript: text } : { type: 'text', text };
    yield this.#events.make('response.content_part.done', { ...position, part });
    const content = isAudio ? { type: 'output_audio', transcript: text } : { type: 'output_text', text };
    const item = this.#message(status, [content]);
    yield this.#events.done(item);
    yield this.#events.make('response.output_item.done', {
      response_id: this.id,
      output_index: this.#output.length,
      item,
    });
    this.#output.push(item);
    this.#item = undefined;
  }

  #message(status: string, content: readonly JsonObject[]): JsonObject {
    return {
      id: this.#item ?? '',
      object: 'realtime.item',
      type: 'message',
      role: 'assistant',
      status,
      content,
    };
  }

  #position(): JsonObject {
    return {
      response_id: this.id,
      item_id: this.#item ?? '',
      output_index: this.#output.length,
      content_index: 0,
    };
  }

  #delta(type: string, delta: string): JsonObject {
    return this.#events.make(type, { ...this.#position(), delta });
  }
}

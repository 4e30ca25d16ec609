import { isObject, type JsonObject, type JsonValue, type Usage } from 'sluice';
import type { LiveEvents } from './events.ts';
import { LiveResponse, type LiveEnd } from './response.ts';
import { inputOf, outputOf, soundFormat, speaks } from './settings.ts';
import { bytesOf, encodeG711, Resampler, samplesOf } from './sound.ts';
import type { LiveStep } from './step.ts';
import { addUsage, neutralUsage, noUsage, readLiveUsage, shownUsage, type LiveUsage } from './usage.ts';

/** Maximum number of calls whose results are awaited. */
const mostCalls = 256;

/** Maximum length of the transcript of one user turn, in characters. */
const maxTranscript = 256 * 1024;

/** Translates the provider's messages of one session into events for the client. */
export class LiveReplies {
  readonly #events: LiveEvents;
  readonly #session: () => JsonObject;
  readonly #calls = new Map<string, string>();
  #response: LiveResponse | undefined;
  #resampler: Resampler | undefined;
  #usage: LiveUsage = noUsage;
  /** True while a requested response has not begun. */
  #awaited = false;
  /** True after the client has cancelled the response: the rest of it is not passed on. */
  #isMuted = false;
  #interrupted = false;
  /** Item of the user's current speech, and its transcript so far. */
  #input: { readonly id: string; transcript: string } | undefined;

  constructor(events: LiveEvents, session: () => JsonObject) {
    this.#events = events;
    this.#session = session;
  }

  get isRunning(): boolean {
    return this.#response !== undefined;
  }

  get isAwaited(): boolean {
    return this.#awaited;
  }

  get isBusy(): boolean {
    return this.#awaited || this.#isMuted || this.#response !== undefined || this.#calls.size > 0;
  }

  /** Records that the client has requested a response. */
  await(): void {
    this.#awaited = true;
  }

  /** Returns the name of the function whose result the client gives; undefined where none is awaited. */
  answered(callId: JsonValue | undefined): string | undefined {
    if (typeof callId !== 'string') return undefined;
    const name = this.#calls.get(callId);
    // The provider continues automatically when it has all results.
    if (this.#calls.delete(callId)) this.#awaited = true;
    return name;
  }

  /** Handles the end of the client's turn. */
  committed(): readonly JsonObject[] {
    const { item, created } = this.#inputItem();
    return [
      this.#events.make('input_audio_buffer.committed', { item_id: item, previous_item_id: null }),
      ...created,
    ];
  }

  /** Cancels the response for the client. Gemini cannot cancel it, so that the rest is charged and not passed on. */
  *cancel(): Iterable<JsonObject> {
    if (this.#response === undefined) {
      yield this.#events.error(
        'response_cancel_not_active',
        'Cancellation failed: no active response found.',
      );
      return;
    }
    yield* this.#end({ status: 'cancelled', reason: 'client_cancelled' });
    this.#isMuted = true;
  }

  read(message: JsonObject): LiveStep {
    const {
      serverContent: content,
      toolCall,
      toolCallCancellation: withdrawn,
      usageMetadata: usage,
    } = message;
    if (isObject(usage)) this.#usage = addUsage(this.#usage, readLiveUsage(usage));
    const events = [
      ...(isVoice(message['voiceActivity']) ? this.#started() : []),
      ...(isObject(content) ? this.#content(content) : []),
      ...(isObject(toolCall) ? this.#call(toolCall) : []),
    ];
    const ids = isObject(withdrawn) && Array.isArray(withdrawn['ids']) ? withdrawn['ids'] : [];
    for (const id of ids) this.#calls.delete(String(id));
    return { toClient: events, ...this.#rest() };
  }

  /** Tokens that no response will tell. */
  #rest(): { readonly usage?: Usage } {
    if (this.#response !== undefined || this.#usage === noUsage) return {};
    const usage = neutralUsage(this.#usage);
    this.#usage = noUsage;
    return { usage };
  }

  *#content(content: JsonObject): Iterable<JsonObject> {
    const {
      inputTranscription: input,
      outputTranscription: output,
      modelTurn,
      interrupted,
      turnComplete,
    } = content;
    if (isObject(input)) yield* this.#transcribe(input);
    if (!this.#isMuted) {
      const { parts } = isObject(modelTurn) ? modelTurn : {};
      for (const part of Array.isArray(parts) ? parts.filter(isObject) : []) yield* this.#part(part);
      if (
        isObject(output) &&
        typeof output['text'] === 'string' &&
        output['text'] !== '' &&
        speaks(this.#session())
      ) {
        yield* this.#begin();
        yield* this.#response?.text(output['text']) ?? [];
      }
    }
    if (interrupted === true) {
      this.#interrupted = true;
      yield* this.#transcribed();
      yield* this.#started();
    }
    if (turnComplete !== true) return;
    // Speech that interrupted a response belongs to the next turn.
    if (!this.#interrupted) yield* this.#transcribed();
    const end: LiveEnd = this.#interrupted
      ? { status: 'cancelled', reason: 'turn_detected' }
      : endOf(content);
    if (this.#response === undefined && this.#awaited && !this.#isMuted && end.status !== 'completed')
      yield* this.#begin();
    yield* this.#end(end);
    this.#interrupted = false;
    this.#isMuted = false;
    this.#awaited = false;
  }

  *#part({ text, thought, inlineData: data }: JsonObject): Iterable<JsonObject> {
    const isAudio = speaks(this.#session());
    if (isObject(data) && isAudio && typeof data['data'] === 'string') {
      yield* this.#begin();
      yield* this.#response?.audio(this.#sound(data['data'])) ?? [];
    } else if (typeof text === 'string' && text !== '' && thought !== true && !isAudio) {
      yield* this.#begin();
      yield* this.#response?.text(text) ?? [];
    }
  }

  /** Returns the sound as the client wants it. Gemini gives 24,000 samples a second: https://ai.google.dev/gemini-api/docs/live-guide */
  #sound(base64: string): string {
    const { rate, law } = soundFormat(outputOf(this.#session())['format']) ?? { rate: 24_000 };
    if (rate === 24_000 && law === undefined) return base64;
    this.#resampler ??= new Resampler(24_000, rate);
    const samples = this.#resampler.push(samplesOf(Buffer.from(base64, 'base64')));
    return (law === undefined ? bytesOf(samples) : encodeG711(samples, law)).toString('base64');
  }

  *#begin(): Iterable<JsonObject> {
    if (this.#response !== undefined) return;
    this.#awaited = false;
    this.#response = new LiveResponse(this.#events, speaks(this.#session()) ? 'audio' : 'text');
    yield* this.#response.begin();
  }

  *#end(end: LiveEnd): Iterable<JsonObject> {
    const response = this.#response;
    if (response === undefined) return;
    const usage = this.#usage;
    this.#usage = noUsage;
    this.#response = undefined;
    this.#resampler = undefined;
    yield* response.end(end, shownUsage(usage));
  }

  /** Yields the calls of tools. The provider waits for the results, and reports the tokens when it has continued. */
  *#call({ functionCalls: calls }: JsonObject): Iterable<JsonObject> {
    if (this.#isMuted) return;
    for (const { id, name, args } of Array.isArray(calls) ? calls.filter(isObject) : []) {
      if (typeof name !== 'string' || this.#calls.size >= mostCalls) continue;
      yield* this.#begin();
      const callId =
        typeof id === 'string' && id !== '' ? id : this.#events.newItem().replace('item', 'call');
      this.#calls.set(callId, name);
      yield* this.#response?.call({ id: callId, name, args: isObject(args) ? args : {} }) ?? [];
    }
    yield* this.#end({ status: 'completed' });
  }

  *#started(): Iterable<JsonObject> {
    if (this.#input !== undefined) return;
    const { item, created } = this.#inputItem();
    yield this.#events.make('input_audio_buffer.speech_started', { item_id: item, audio_start_ms: 0 });
    yield* created;
  }

  /** Returns the item of the user's current speech, and the events that create it. */
  #inputItem(): { readonly item: string; readonly created: readonly JsonObject[] } {
    if (this.#input !== undefined) return { item: this.#input.id, created: [] };
    const id = this.#events.newItem();
    this.#input = { id, transcript: '' };
    const content = [{ type: 'input_audio', transcript: null }];
    const item = { id, object: 'realtime.item', type: 'message', role: 'user', status: 'completed', content };
    return { item: id, created: [this.#events.added(item), this.#events.done(item)] };
  }

  *#transcribe({ text, finished }: JsonObject): Iterable<JsonObject> {
    // Models send transcripts also without a request: pydantic-ai-slim 2.68.0, realtime/google.py
    if (!isObject(inputOf(this.#session())['transcription'])) return;
    const { item, created } = this.#inputItem();
    yield* created;
    if (typeof text === 'string' && text !== '' && this.#input !== undefined) {
      this.#input.transcript = (this.#input.transcript + text).slice(0, maxTranscript);
      const position = { item_id: item, content_index: 0 };
      yield this.#events.make('conversation.item.input_audio_transcription.delta', {
        ...position,
        delta: text,
      });
    }
    if (finished === true) yield* this.#transcribed();
  }

  /** Completes the transcript of the user's speech. Its tokens are part of those of the response. */
  *#transcribed(): Iterable<JsonObject> {
    const input = this.#input;
    if (input === undefined) return;
    this.#input = undefined;
    if (input.transcript === '') return;
    yield this.#events.make('conversation.item.input_audio_transcription.completed', {
      item_id: input.id,
      content_index: 0,
      transcript: input.transcript,
      usage: { type: 'tokens', total_tokens: 0, input_tokens: 0, output_tokens: 0 },
    });
  }
}

function isVoice(activity: JsonValue | undefined): boolean {
  return isObject(activity) && activity['voiceActivityType'] === 'ACTIVITY_START';
}

/** @google/genai 2.32.0, dist/genai.d.ts, `TurnCompleteReason`: most of them say why there is no response, or no further one. */
function endOf({ turnCompleteReason: reason }: JsonObject): LiveEnd {
  const word = typeof reason === 'string' ? reason : '';
  if (/PROHIBITED|SAFETY|UNSAFE|BLOCKLIST|CELEBRITY|PROMINENT|CHILD|MINORS|_IP_|PEOPLE|NCII/.test(word))
    return { status: 'incomplete', reason: 'content_filter' };
  return /MALFORMED|REJECTED/.test(word)
    ? { status: 'failed', reason: word.toLowerCase() }
    : { status: 'completed' };
}

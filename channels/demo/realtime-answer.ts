/** Builds the events of one response in a realtime session of the demo channel. */
import { GatewayError, isObject, type GatewayEvent, type JsonObject, type JsonValue } from 'sluice';
import { fromSchema } from './from-schema.ts';
import type { ConversationTokens, RealtimeConversation, Turn } from './realtime-conversation.ts';
import type { RealtimeEvents } from './realtime-events.ts';
import { readSwitches, type Switches } from './switches.ts';
import { pieces } from './words.ts';

/** Four samples of silence. */
const silence = 'AAAAAAAAAAA=';

/** Data of the session that a response needs. */
export interface AnswerContext {
  /** The session's id, and the number of the answer in it. */
  readonly session: string;
  readonly number: number;
  readonly model: string;
  /** Settings of the session, and those that the request for this response overrides. */
  readonly settings: JsonObject;
  readonly requested: JsonObject;
  readonly conversation: RealtimeConversation;
  readonly events: RealtimeEvents;
}

/** Response of a session: echoes the last text, or calls a tool, and counts tokens. */
export class RealtimeAnswer {
  readonly #context: AnswerContext;
  readonly #id: string;
  readonly #switches: Switches;
  readonly #audio: boolean;
  readonly #output: JsonObject[] = [];
  #words = 0;
  #sounds = 0;

  constructor(context: AnswerContext) {
    const { session, number, model, settings, requested, conversation } = context;
    const modalities = requested.output_modalities ?? settings.output_modalities;
    this.#context = context;
    this.#id = `resp_${session}_${number}`;
    this.#switches = readSwitches(model, conversation.last?.text ?? '');
    this.#audio = Array.isArray(modalities) && modalities.includes('audio');
  }

  /** Yields the events of the response. Throws when a command requests a failure. */
  *give(): Iterable<GatewayEvent> {
    const { requested, settings, conversation } = this.#context;
    const { last } = conversation;
    const inputText = last?.text ?? '';
    const switches = this.#switches;
    if (switches['200-error']) {
      yield this.#context.events.error('server_error', 'The demo fails, as you asked.', {});
      return;
    }
    const input = conversation.count(
      typeof requested.instructions === 'string' ? requested.instructions : settings.instructions,
    );
    yield this.#context.events.create('response.created', { response: this.#response('in_progress') });
    yield this.#context.events.create('rate_limits.updated', {
      rate_limits: [{ name: 'tokens', limit: 100_000, remaining: 99_000, reset_seconds: 0.6 }],
    });
    const tool = this.#calledTool(inputText);
    const failed = yield* tool === undefined ? this.#speak(last, inputText) : this.#callTool(tool);
    const status = failed ? 'failed' : 'completed';
    const usage = failed || switches['no-usage'] ? null : this.#usage(input);
    const response = { ...this.#response(status), output: this.#output, usage };
    yield this.#context.events.create('response.done', { response });
  }

  *#speak(last: Turn | undefined, inputText: string): Generator<GatewayEvent, boolean> {
    const switches = this.#switches;
    const audio = this.#audio;
    const id = this.#id;
    const text =
      last?.item.type === 'function_call_output'
        ? `The tool returned: ${inputText}`
        : `You said: ${inputText}`;
    const words =
      switches.chunks === undefined ? pieces(text) : Array.from({ length: switches.chunks }, () => ' word');
    const item = this.#context.conversation.begin('message', () => ({ role: 'assistant', content: [] }));
    const position = { response_id: id, item_id: item.id, output_index: 0, content_index: 0 };
    const part = audio ? { type: 'audio', transcript: '' } : { type: 'text', text: '' };
    yield this.#context.events.create('response.output_item.added', {
      response_id: id,
      output_index: 0,
      item,
    });
    yield this.#context.events.create('conversation.item.added', {
      previous_item_id: last?.id ?? null,
      item,
    });
    yield this.#context.events.create('response.content_part.added', { ...position, part });
    const kind = audio ? 'response.output_audio_transcript' : 'response.output_text';
    for (const [index, word] of words.entries()) {
      if (index === switches['cut-after'])
        throw new GatewayError('upstream_cut', 'The upstream closed the connection.', { origin: 'upstream' });
      if (index === switches['error-after']) {
        yield this.#context.events.error('server_error', 'The demo fails, as you asked.', {});
        return true;
      }
      this.#words += 1;
      yield this.#context.events.create(`${kind}.delta`, { ...position, delta: word });
      if (!audio) continue;
      this.#sounds += 1;
      yield this.#context.events.create('response.output_audio.delta', { ...position, delta: silence });
    }
    const whole = words.join('');
    if (audio) yield this.#context.events.create('response.output_audio.done', position);
    yield this.#context.events.create(
      `${kind}.done`,
      audio ? { ...position, transcript: whole } : { ...position, text: whole },
    );
    const content = audio
      ? { type: 'output_audio', transcript: whole }
      : { type: 'output_text', text: whole };
    const shown = audio ? { type: 'audio', transcript: whole } : { type: 'text', text: whole };
    yield this.#context.events.create('response.content_part.done', { ...position, part: shown });
    yield* this.#finished({ ...item, status: 'completed', content: [content] }, whole);
    return false;
  }

  *#callTool(tool: JsonObject): Generator<GatewayEvent, boolean> {
    const { conversation } = this.#context;
    const name = String(tool.name);
    const text = JSON.stringify(fromSchema(tool.parameters));
    const item = conversation.begin('function_call', (number) => ({
      name,
      call_id: `call_${number}`,
      arguments: '',
    }));
    const position = { response_id: this.#id, item_id: item.id, output_index: 0, call_id: item.call_id };
    yield this.#context.events.create('response.output_item.added', {
      response_id: this.#id,
      output_index: 0,
      item,
    });
    yield this.#context.events.create('conversation.item.added', {
      previous_item_id: conversation.last?.id ?? null,
      item,
    });
    for (const delta of pieces(text)) {
      this.#words += 1;
      yield this.#context.events.create('response.function_call_arguments.delta', { ...position, delta });
    }
    yield this.#context.events.create('response.function_call_arguments.done', {
      ...position,
      name,
      arguments: text,
    });
    yield* this.#finished({ ...item, status: 'completed', arguments: text }, text);
    return false;
  }

  *#finished(item: JsonObject, text: string): Iterable<GatewayEvent> {
    this.#output.push(item);
    yield this.#context.events.create('response.output_item.done', {
      response_id: this.#id,
      output_index: 0,
      item,
    });
    this.#context.conversation.answered(item, text);
    yield this.#context.events.create('conversation.item.done', { previous_item_id: null, item });
  }

  #calledTool(text: string): JsonObject | undefined {
    const tools = this.#context.requested.tools ?? this.#context.settings.tools;
    if (!Array.isArray(tools)) return undefined;
    const [, wanted] = /\bcall (\w+)/.exec(text) ?? [];
    return (tools as readonly JsonValue[])
      .filter(isObject)
      .find(({ name }) => wanted !== undefined && name === wanted);
  }

  #response(status: string): JsonObject {
    const { session, requested } = this.#context;
    const details = { type: 'failed', error: { type: 'server_error', code: 'server_error' } };
    return {
      object: 'realtime.response',
      id: this.#id,
      status,
      status_details: status === 'failed' ? details : null,
      output: [],
      conversation_id: `conv_${session}`,
      output_modalities: [this.#audio ? 'audio' : 'text'],
      max_output_tokens: 'inf',
      usage: null,
      metadata: requested.metadata ?? null,
    };
  }

  #usage(input: ConversationTokens): JsonObject {
    const words = this.#words;
    const sounds = this.#sounds;
    return {
      total_tokens: input.text + input.audio + words + sounds,
      input_tokens: input.text + input.audio,
      output_tokens: words + sounds,
      input_token_details: {
        text_tokens: input.text,
        audio_tokens: input.audio,
        image_tokens: 0,
        cached_tokens: 0,
        cached_tokens_details: { text_tokens: 0, audio_tokens: 0, image_tokens: 0 },
      },
      output_token_details: { text_tokens: words, audio_tokens: sounds },
    };
  }
}

import { GatewayError, type GatewayEvent, type JsonObject, type JsonValue } from 'sluice';
import { isObject, parseObject, type SocketMessage } from 'sluice/internal';
import { fromSchema } from './from-schema.ts';
import { readSwitches, type Switches } from './switches.ts';
import { countWords, pieces } from './words.ts';

/** Bytes of sound that are one token: a twentieth of a second of 16-bit samples at 24 kHz. */
const audioToken = 2400;
/** Four samples of silence. */
const silence = 'AAAAAAAAAAA=';
/** Sound that is taken before it must be committed. */
const mostAudio = 64 * 1024 * 1024;

interface Turn {
  readonly id: string;
  readonly item: JsonObject;
  readonly text: string;
  readonly audioTokens: number;
}

/** One answer while it is given. */
interface Answer {
  readonly id: string;
  readonly switches: Switches;
  readonly audio: boolean;
  readonly output: JsonObject[];
  words: number;
  sounds: number;
}

/** A session of the demo: it remembers what was said, echoes the last text, calls tools, and counts. */
export class RealtimeSession {
  readonly #id: string;
  readonly #model: string;
  #session: JsonObject;
  readonly #turns: Turn[] = [];
  #audioBytes = 0;
  #events = 0;
  #items = 0;
  #answers = 0;

  constructor(id: string, model: string) {
    this.#id = id;
    this.#model = model;
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

  /** What is said before the client has said anything. */
  *begin(): Iterable<GatewayEvent> {
    yield this.#say('session.created', { session: this.#session });
  }

  /** What a message is answered with. Throws where the demo was told to break. */
  *answer({ data, binary, close }: SocketMessage): Iterable<GatewayEvent> {
    if (close !== undefined) return;
    const event = binary ? undefined : parseObject(data.toString());
    if (typeof event?.type !== 'string') {
      yield this.#error(
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
        yield this.#say('session.updated', { session: this.#session });
        return;
      case 'input_audio_buffer.append':
        yield* this.#append(event);
        return;
      case 'input_audio_buffer.clear':
        this.#audioBytes = 0;
        yield this.#say('input_audio_buffer.cleared', {});
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
        yield this.#error(
          'response_cancel_not_active',
          'Cancellation failed: no active response found',
          event,
        );
        return;
      default:
        yield this.#error('invalid_value', `Invalid value: '${event.type.slice(0, 100)}'.`, event, 'type');
    }
  }

  *#append(event: JsonObject): Iterable<GatewayEvent> {
    const bytes = typeof event.audio === 'string' ? Buffer.byteLength(event.audio, 'base64') : 0;
    if (bytes === 0 || this.#audioBytes + bytes > mostAudio)
      yield this.#error(
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
      yield this.#error('input_audio_buffer_commit_empty', 'The input audio buffer is empty.', event);
      return;
    }
    this.#audioBytes = 0;
    const audioTokens = Math.ceil(bytes / audioToken);
    const said = `${bytes} bytes of sound`;
    const content = [{ type: 'input_audio', transcript: null }];
    const turn = this.#remember({ type: 'message', role: 'user', content }, said, audioTokens);
    yield this.#say('input_audio_buffer.committed', {
      item_id: turn.id,
      previous_item_id: this.#before(turn),
    });
    yield* this.#added(turn);
    if (!isObject(at(this.#session, 'audio', 'input', 'transcription'))) return;
    const usage = {
      type: 'tokens',
      total_tokens: audioTokens + countWords(said),
      input_tokens: audioTokens,
      input_token_details: { text_tokens: 0, audio_tokens: audioTokens },
      output_tokens: countWords(said),
    };
    const where = { item_id: turn.id, content_index: 0 };
    yield this.#say('conversation.item.input_audio_transcription.completed', {
      ...where,
      transcript: said,
      usage,
    });
  }

  *#create(event: JsonObject): Iterable<GatewayEvent> {
    const { item } = event;
    if (!isObject(item) || typeof item.type !== 'string') {
      yield this.#error('missing_required_parameter', "Missing required parameter: 'item'.", event, 'item');
      return;
    }
    const text = textOf(item);
    yield* this.#added(this.#remember(item, text, text === '' ? 1 : 0));
  }

  *#onItem(event: JsonObject, type: string): Iterable<GatewayEvent> {
    const index = this.#turns.findIndex(({ id }) => id === event.item_id);
    const turn = this.#turns[index];
    if (turn === undefined) {
      yield this.#error('invalid_value', 'There is no item with this id.', event, 'item_id');
      return;
    }
    if (type === 'conversation.item.retrieve') {
      yield this.#say('conversation.item.retrieved', { item: turn.item });
    } else if (type === 'conversation.item.delete') {
      this.#turns.splice(index, 1);
      yield this.#say('conversation.item.deleted', { item_id: turn.id });
    } else {
      const { content_index: content, audio_end_ms: end } = event;
      yield this.#say('conversation.item.truncated', {
        item_id: turn.id,
        content_index: content ?? 0,
        audio_end_ms: end ?? 0,
      });
    }
  }

  *#respond(asked: JsonObject): Iterable<GatewayEvent> {
    const last = this.#turns.at(-1);
    const said = last?.text ?? '';
    const modalities = asked.output_modalities ?? this.#session.output_modalities;
    this.#answers += 1;
    const answer: Answer = {
      id: `resp_${this.#id}_${this.#answers}`,
      switches: readSwitches(this.#model, said),
      audio: Array.isArray(modalities) && modalities.includes('audio'),
      output: [],
      words: 0,
      sounds: 0,
    };
    const { switches } = answer;
    if (switches['200-error']) {
      yield this.#error('server_error', 'The demo fails, as you asked.', {});
      return;
    }
    const input = this.#inputUsage(asked);
    yield this.#say('response.created', { response: this.#response(answer, 'in_progress', asked) });
    yield this.#say('rate_limits.updated', {
      rate_limits: [{ name: 'tokens', limit: 100_000, remaining: 99_000, reset_seconds: 0.6 }],
    });
    const tool = this.#calledTool(said, asked);
    const failed = yield* tool === undefined ? this.#speak(answer, last, said) : this.#callTool(answer, tool);
    const status = failed ? 'failed' : 'completed';
    const usage = failed || switches['no-usage'] ? null : usageOf(input, answer);
    const response = { ...this.#response(answer, status, asked), output: answer.output, usage };
    yield this.#say('response.done', { response });
  }

  *#speak(answer: Answer, last: Turn | undefined, said: string): Generator<GatewayEvent, boolean> {
    const { switches, audio, id } = answer;
    const text =
      last?.item.type === 'function_call_output' ? `The tool returned: ${said}` : `You said: ${said}`;
    const words =
      switches.chunks === undefined ? pieces(text) : Array.from({ length: switches.chunks }, () => ' word');
    const item = this.#newItem('message', { role: 'assistant', content: [] });
    const place = { response_id: id, item_id: item.id, output_index: 0, content_index: 0 };
    const part = audio ? { type: 'audio', transcript: '' } : { type: 'text', text: '' };
    yield this.#say('response.output_item.added', { response_id: id, output_index: 0, item });
    yield this.#say('conversation.item.added', { previous_item_id: last?.id ?? null, item });
    yield this.#say('response.content_part.added', { ...place, part });
    const kind = audio ? 'response.output_audio_transcript' : 'response.output_text';
    for (const [index, word] of words.entries()) {
      if (index === switches['cut-after'])
        throw new GatewayError('upstream_cut', 'The upstream closed the connection.', { origin: 'upstream' });
      if (index === switches['error-after']) {
        yield this.#error('server_error', 'The demo fails, as you asked.', {});
        return true;
      }
      answer.words += 1;
      yield this.#say(`${kind}.delta`, { ...place, delta: word });
      if (!audio) continue;
      answer.sounds += 1;
      yield this.#say('response.output_audio.delta', { ...place, delta: silence });
    }
    const whole = words.join('');
    if (audio) yield this.#say('response.output_audio.done', place);
    yield this.#say(`${kind}.done`, audio ? { ...place, transcript: whole } : { ...place, text: whole });
    const content = audio
      ? { type: 'output_audio', transcript: whole }
      : { type: 'output_text', text: whole };
    const shown = audio ? { type: 'audio', transcript: whole } : { type: 'text', text: whole };
    yield this.#say('response.content_part.done', { ...place, part: shown });
    yield* this.#finished(answer, { ...item, status: 'completed', content: [content] }, whole);
    return false;
  }

  *#callTool(answer: Answer, tool: JsonObject): Generator<GatewayEvent, boolean> {
    const name = String(tool.name);
    const text = JSON.stringify(fromSchema(tool.parameters));
    const item = this.#newItem('function_call', { name, call_id: `call_${this.#items}`, arguments: '' });
    const place = { response_id: answer.id, item_id: item.id, output_index: 0, call_id: item.call_id };
    yield this.#say('response.output_item.added', { response_id: answer.id, output_index: 0, item });
    yield this.#say('conversation.item.added', { previous_item_id: this.#turns.at(-1)?.id ?? null, item });
    for (const delta of pieces(text)) {
      answer.words += 1;
      yield this.#say('response.function_call_arguments.delta', { ...place, delta });
    }
    yield this.#say('response.function_call_arguments.done', { ...place, name, arguments: text });
    yield* this.#finished(answer, { ...item, status: 'completed', arguments: text }, text);
    return false;
  }

  *#finished(answer: Answer, item: JsonObject, text: string): Iterable<GatewayEvent> {
    answer.output.push(item);
    yield this.#say('response.output_item.done', { response_id: answer.id, output_index: 0, item });
    this.#turns.push({ id: String(item.id), item, text, audioTokens: 0 });
    yield this.#say('conversation.item.done', { previous_item_id: null, item });
  }

  *#added(turn: Turn): Iterable<GatewayEvent> {
    const place = { previous_item_id: this.#before(turn), item: turn.item };
    yield this.#say('conversation.item.added', place);
    yield this.#say('conversation.item.done', place);
  }

  #calledTool(said: string, asked: JsonObject): JsonObject | undefined {
    const tools = asked.tools ?? this.#session.tools;
    if (!Array.isArray(tools)) return undefined;
    const [, wanted] = /\bcall (\w+)/.exec(said) ?? [];
    return (tools as readonly JsonValue[])
      .filter(isObject)
      .find(({ name }) => wanted !== undefined && name === wanted);
  }

  #remember(item: JsonObject, text: string, audioTokens: number): Turn {
    this.#items += 1;
    const id = typeof item.id === 'string' ? item.id : `item_${this.#id}_${this.#items}`;
    const turn = {
      id,
      item: { ...item, id, object: 'realtime.item', status: 'completed' },
      text,
      audioTokens,
    };
    this.#turns.push(turn);
    return turn;
  }

  #newItem(type: string, members: JsonObject): JsonObject {
    this.#items += 1;
    return {
      id: `item_${this.#id}_${this.#items}`,
      object: 'realtime.item',
      type,
      status: 'in_progress',
      ...members,
    };
  }

  #before(turn: Turn): string | null {
    return this.#turns[this.#turns.indexOf(turn) - 1]?.id ?? null;
  }

  #inputUsage({ instructions }: JsonObject): { readonly text: number; readonly audio: number } {
    const told = typeof instructions === 'string' ? instructions : this.#session.instructions;
    let text = countWords(typeof told === 'string' ? told : '');
    let audio = 0;
    for (const turn of this.#turns) {
      audio += turn.audioTokens;
      if (turn.audioTokens === 0) text += countWords(turn.text);
    }
    return { text, audio };
  }

  #response(answer: Answer, status: string, { metadata = null }: JsonObject): JsonObject {
    const details = { type: 'failed', error: { type: 'server_error', code: 'server_error' } };
    return {
      object: 'realtime.response',
      id: answer.id,
      status,
      status_details: status === 'failed' ? details : null,
      output: [],
      conversation_id: `conv_${this.#id}`,
      output_modalities: [answer.audio ? 'audio' : 'text'],
      max_output_tokens: 'inf',
      usage: null,
      metadata,
    };
  }

  #error(
    code: string,
    message: string,
    event: JsonObject | undefined,
    param: string | null = null,
  ): GatewayEvent {
    const type = code === 'server_error' ? code : 'invalid_request_error';
    const about = typeof event?.event_id === 'string' ? event.event_id : null;
    return this.#say('error', { error: { type, code, message, param, event_id: about } });
  }

  #say(type: string, members: JsonObject): GatewayEvent {
    this.#events += 1;
    const event = { type, event_id: `event_${this.#id}_${this.#events}`, ...members };
    return { type: 'message', data: Buffer.from(JSON.stringify(event)), binary: false };
  }
}

function usageOf(
  input: { readonly text: number; readonly audio: number },
  { words, sounds }: Answer,
): JsonObject {
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

function textOf(item: JsonObject): string {
  if (typeof item.output === 'string') return item.output;
  if (!Array.isArray(item.content)) return '';
  return (item.content as readonly JsonValue[])
    .filter(isObject)
    .map((part) => part.text ?? part.transcript)
    .filter((text) => typeof text === 'string')
    .join(' ');
}

function at(value: JsonValue | undefined, ...path: readonly string[]): JsonValue | undefined {
  return path.reduce<JsonValue | undefined>(
    (found, name) => (isObject(found) ? found[name] : undefined),
    value,
  );
}

/** Objects member by member, anything else as it is given. */
function merged(old: JsonObject, given: JsonObject): JsonObject {
  const members = Object.entries(given).map(([name, value]) => {
    const before = old[name];
    return [name, isObject(before) && isObject(value) ? merged(before, value) : value];
  });
  return { ...old, ...(Object.fromEntries(members) as JsonObject) };
}

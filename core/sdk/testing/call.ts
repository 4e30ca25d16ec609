/** Makes a call for tests of plugins as the front end makes it from a request, from a few options with defaults. */
import { Exchange } from '../../call/exchange.ts';
import { firstView } from '../../call/view.ts';
import { type Call } from '../call.ts';
import type { ChatRequest, ChatSettings, Message, Tool, ToolChoice } from '../../model/chat.ts';
import type { JsonObject } from '../../model/json.ts';
import type { ApiKey } from '../api-key.ts';
import { caller } from '../caller.ts';
import type { Codec, Format, Operation } from '../format.ts';
import { endpointCodec } from '../../front/endpoints.ts';
import { listingCodec } from '../../front/models.ts';
import { formatNamed } from './formats.ts';

/**
 * Options of a call in a test. Default: a chat in the format `chat-completions` with one message, not streamed.
 *
 * @example
 * await tested.run({ messages: ['Hello', 'Hi, how can I help?', 'Tell me a joke'], stream: true, format: 'messages' });
 */
export interface CallOptions {
  /** Operation of the call. `list-models` and `state` have no model and no body. Default `chat`. */
  readonly operation?: Operation;
  /** The format in which the client speaks. */
  readonly format?: string;
  readonly model?: string;
  readonly stream?: boolean;
  readonly system?: string;
  /** Turns. Texts alternate between user and assistant, beginning with the user. */
  readonly messages?: readonly (string | Message)[];
  readonly tools?: readonly Tool[];
  readonly toolChoice?: ToolChoice;
  readonly settings?: ChatSettings;
  /**
   * The body as the client sends it, in place of all of the above except `operation` and `format`; it has its own `model` and `stream`.
   * Operations other than `chat` and `count-tokens` need one.
   */
  readonly body?: JsonObject;
  /** Lower-case names. */
  readonly headers?: Readonly<Record<string, string>>;
  /** `?a=b` */
  readonly query?: string;
  /** The client's address. */
  readonly ip?: string;
  /** API key of the caller, for plugins that read it. Absent: the caller is not identified. */
  readonly key?: Partial<ApiKey>;
}

/** A call before its body is read, which {@link MadeCall.read} does. */
export interface MadeCall {
  readonly call: Call;
  readonly exchange: Exchange;
  /** Reads and checks the body, as the gateway does between `identify` and `admit`. Throws GatewayError where it is wrong. */
  read(): void;
}

let made = 0;

/** Makes a call. */
export async function makeCall(options: CallOptions = {}): Promise<MadeCall> {
  const { operation = 'chat', model = 'test-model', stream = false } = options;
  const format = await formatNamed(options.format ?? 'chat-completions');
  const query = new URLSearchParams(options.query);
  const codec = codecOf(format, operation, query);
  const hasBody = operation !== 'list-models' && operation !== 'state';
  const body = hasBody ? (options.body ?? bodyOf(codec, options, model, stream)) : {};
  const params = 'model' in body ? {} : { model, stream };
  made += 1;
  const exchange = new Exchange(`req_test${made}`, operation, format, codec, {
    method: hasBody ? 'POST' : 'GET',
    path: format.routes.find((route) => route.operation === operation)?.path ?? '/',
    query,
    headers: { 'content-type': 'application/json', ...options.headers },
    params,
    ip: options.ip ?? '192.0.2.7',
    bytes: Buffer.alloc(0),
    body: undefined,
  });
  const call = firstView(exchange);
  if (options.key !== undefined) call.set(caller, keyOf(options.key));
  return {
    call,
    exchange,
    read() {
      if (!hasBody) return;
      exchange.understand(Buffer.from(JSON.stringify(body)), body);
      exchange.decoded = codec.validate(body, params);
    },
  };
}

function codecOf(format: Format, operation: Operation, query: URLSearchParams): Codec {
  if (operation === 'list-models') return listingCodec(format, undefined, query);
  if (operation === 'state') return endpointCodec(format);
  const codec: Codec | undefined = format.codecs[operation];
  if (codec === undefined) throw new Error(`The format "${format.name}" has nothing for ${operation}.`);
  return codec;
}

function bodyOf(codec: Codec, options: CallOptions, model: string, stream: boolean): JsonObject {
  if (codec.operation !== 'chat' && codec.operation !== 'count-tokens')
    throw new Error(`A call for ${codec.operation} needs a body.`);
  const request = requestOf(options, codec.operation, codec.format, model, stream);
  const target = { model, stream, traits: {}, headers: {}, drop: () => {} };
  return codec.encodeRequest(request, { ...target, unsupported: 'refuse' }).body;
}

function requestOf(
  options: CallOptions,
  operation: ChatRequest['operation'],
  format: string,
  model: string,
  stream: boolean,
): ChatRequest {
  const { system, messages = ['Hello'], tools = [], toolChoice, settings = {} } = options;
  return {
    operation,
    format,
    model,
    stream,
    system: system === undefined ? [] : [plain('system', system)],
    messages: messages.map((one, index) =>
      typeof one === 'string' ? plain(index % 2 === 0 ? 'user' : 'assistant', one) : one,
    ),
    tools,
    ...(toolChoice === undefined ? {} : { toolChoice }),
    // This format requires a limit of the output.
    settings: format === 'messages' ? { maxOutput: 1024, ...settings } : settings,
  };
}

function plain(role: Message['role'], text: string): Message {
  return { role, content: [{ type: 'text', text }], plain: true };
}

function keyOf(given: Partial<ApiKey>): ApiKey {
  return {
    id: 'key_0000000000000001',
    name: 'test',
    hash: '0'.repeat(64),
    prefix: 'sk-test',
    suffix: 'test',
    enabled: true,
    createdAt: 0,
    ...given,
  };
}

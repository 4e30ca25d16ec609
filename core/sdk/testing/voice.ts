/** Wire dialects of fake providers: decode requests and encode whole responses, streams and errors in a provider's format. */
import { parseObject } from '../../json/parse.ts';
import { eventStreamType, writeEventStream } from '../../formats/_shared/event-stream.ts';
import type { ChatRequest } from '../../model/chat.ts';
import type { GatewayEvent } from '../../model/event.ts';
import { writeSse } from '../../formats/_shared/sse.ts';
import { errorReply } from '../../formats/_shared/exceptions.ts';
import type { ReplyContext, RouteParams, WireFrame } from '../format.ts';
import { GatewayError } from '../errors.ts';
import { formatNamed } from './formats.ts';
import type { SeenRequest } from './provider.ts';

/**
 * A request, decoded by the fake provider.
 *
 * @example
 * if (received.request.tools.length > 0) return reply(toolCall('weather', {}));
 */
export interface ReceivedRequest {
  readonly request: ChatRequest;
  readonly stream: boolean;
}

/**
 * Dialect of a fake provider: decodes requests and encodes responses. `formatVoice` returns those of the public formats; for a provider that
 * differs from them, override members of one of these.
 *
 * @example
 * const voice = { ...(await formatVoice('chat-completions')), error: (status) => JSON.stringify({ detail: `no: ${status}` }) };
 */
export interface Voice {
  /** Decodes a request. */
  hear(request: SeenRequest): ReceivedRequest;
  /** Returns the body of a whole response. */
  whole(events: readonly GatewayEvent[], request: SeenRequest): string;
  /** Returns the pieces of a stream, one for each event with output, and its end. */
  stream(
    events: readonly GatewayEvent[],
    request: SeenRequest,
  ): { readonly pieces: readonly (string | Buffer)[]; readonly end: string | Buffer };
  /** The media type of such a stream. Default: server-sent events. */
  readonly streamType?: string;
  /** Returns the body of an error. */
  error(status: number, message: string): string;
  /** Returns headers of an error besides its content type. */
  errorHeaders?(status: number): Readonly<Record<string, string>>;
}

/** Returns the headers of a stream in this dialect. */
export function streamHeaders({ streamType = 'text/event-stream' }: Voice): Readonly<Record<string, string>> {
  return { 'content-type': streamType };
}

/**
 * Returns the dialect of a provider that follows the documentation of a public format: `chat-completions`, `messages`, `responses`,
 * `generate-content`, `converse`, and `invoke` (messages in the envelope of InvokeModel); these two stream binary messages.
 *
 * @example
 * const voice = await formatVoice('messages');
 */
export async function formatVoice(name: string): Promise<Voice> {
  const { codecs } = await formatNamed(name);
  const codec = codecs.chat;
  const { encodeStream } = codec ?? {};
  if (codec === undefined || encodeStream === undefined) throw new Error(`"${name}" has no chats.`);
  const read = (request: SeenRequest) => {
    const body = parseObject(request.body.toString()) ?? {};
    const params = paramsIn(request.url);
    const context: ReplyContext = {
      model: 'model-of-the-provider',
      body,
      requestId: 'req_provider',
      created: 1_700_000_000,
      inputEstimate: 0,
      drop: () => {},
    };
    return { body, params, context };
  };
  const isBinary = codec.clientFraming({}, { stream: true }) === 'event-stream';
  const write = isBinary ? writeEventStream : (frame: WireFrame) => Buffer.from(writeSse(frame));
  const written = (frames: readonly WireFrame[]): Buffer => Buffer.concat(frames.map(write));
  return {
    hear(request) {
      const { body, params } = read(request);
      return {
        request: codec.decodeRequest(body, params) as ChatRequest,
        stream: codec.peek({ model: 'any', ...body }, params).stream,
      };
    },
    whole(events, request) {
      const encoder = codec.encodeWhole(read(request).context);
      for (const event of events) encoder.event(event);
      return JSON.stringify(encoder.end());
    },
    stream(events, request) {
      const encoder = encodeStream.call(codec, read(request).context);
      const pieces = events.map((event) => written(encoder.event(event)));
      return { pieces: pieces.filter(({ length }) => length > 0), end: written(encoder.end()) };
    },
    error: (status, message) =>
      JSON.stringify({ type: 'error', error: { type: 'error', code: status, message } }),
    ...(isBinary ? binaryStreams : {}),
  };
}

/** Members for formats with binary streams, whose errors have their type in a header. */
const binaryStreams: Pick<Voice, 'streamType' | 'error' | 'errorHeaders'> = {
  streamType: eventStreamType,
  error: (_status, message) => JSON.stringify({ message }),
  errorHeaders: (status) =>
    errorReply(new GatewayError('upstream_error', 'No.', { status }), 'req_provider').headers,
};

/** Returns the parameters in a path that contains the model: `/models/NAME:streamGenerateContent`, `/model/NAME/converse-stream`. */
function paramsIn(url: string): RouteParams {
  const [, before, verb = ''] = /\/models\/([^/:]+):(\w+)/.exec(url) ?? [];
  if (before !== undefined)
    return { model: before, stream: verb === 'streamGenerateContent', framing: 'sse' };
  const [, model, method = ''] = /\/model\/([^/]+)\/([\w-]+)/.exec(url) ?? [];
  if (model === undefined) return {};
  return { model: decodeURIComponent(model), stream: method.endsWith('-stream') };
}

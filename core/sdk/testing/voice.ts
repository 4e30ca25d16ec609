import { parseObject } from '../../model/json.ts';
import type { ChatRequest } from '../../model/chat.ts';
import type { GatewayEvent } from '../../model/event.ts';
import { writeSse } from '../../formats/_shared/sse.ts';
import type { ReplyContext, RouteParams } from '../format.ts';
import { formatNamed } from './formats.ts';
import type { SeenRequest } from './provider.ts';

/**
 * A request as its provider understands it.
 *
 * @example
 * if (heard.request.tools.length > 0) return reply(toolCall('weather', {}));
 */
export interface Heard {
  readonly request: ChatRequest;
  readonly stream: boolean;
}

/**
 * How a provider speaks: how it reads a request and writes a reply. `formatVoice` makes those of the public formats; a provider with a
 * dialect of its own changes one of these.
 *
 * @example
 * const voice = { ...(await formatVoice('chat-completions')), error: (status) => JSON.stringify({ detail: `no: ${status}` }) };
 */
export interface Voice {
  /** Understands a request. */
  hear(request: SeenRequest): Heard;
  /** The body of a whole reply. */
  whole(events: readonly GatewayEvent[], request: SeenRequest): string;
  /** A stream in pieces, one for each event that has something to say, and its end. */
  stream(
    events: readonly GatewayEvent[],
    request: SeenRequest,
  ): { readonly pieces: readonly string[]; readonly end: string };
  /** The body of an error. */
  error(status: number, message: string): string;
}

/**
 * A provider that speaks one of the public formats as its documentation says: `chat-completions`, `messages`, `responses`,
 * `generate-content`.
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
    // Only where the model stands in the path: `/models/NAME:streamGenerateContent`.
    const [, model, verb] = /\/models\/([^/:]+):(\w+)/.exec(request.url) ?? [];
    const params: RouteParams =
      model === undefined ? {} : { model, stream: verb === 'streamGenerateContent', framing: 'sse' };
    const context: ReplyContext = {
      model: 'model-of-the-provider',
      body,
      requestId: 'req_provider',
      created: 1_700_000_000,
      inputEstimate: 0,
      lose: () => {},
    };
    return { body, params, context };
  };
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
      const written = events.map((event) => encoder.event(event).map(writeSse).join(''));
      return { pieces: written.filter((piece) => piece !== ''), end: encoder.end().map(writeSse).join('') };
    },
    error: (status, message) =>
      JSON.stringify({ type: 'error', error: { type: 'error', code: status, message } }),
  };
}

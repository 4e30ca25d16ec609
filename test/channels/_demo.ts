import type { Upstream, UpstreamRequest } from '../../core/sdk/channel.ts';
import type { Format } from '../../core/sdk/format.ts';
import type { ChannelTools } from '../../core/sdk/define.ts';
import type { ChatRequest, ChatSettings, Message, Tool, ToolChoice } from '../../core/model/chat.ts';
import type { GatewayEvent } from '../../core/model/event.ts';
import type { JsonObject } from '../../core/model/json.ts';
import type { Usage } from '../../core/model/usage.ts';
import demo from '../../channels/demo/index.ts';
import { parseSse } from '../../core/formats/_shared/sse.ts';
import { outcome } from '../support/answer.ts';
import { testCall } from '../support/call.ts';

/**
 * A format without a wire: its requests are decoded requests and its frames are events. The demo's decisions can be read off it, whatever
 * the real formats make of them.
 */
export function plainFormat(name: string): Format {
  const codec = {
    decodeRequest: (body: JsonObject) => body as unknown as ChatRequest,
    encodeStream: () => ({
      event: (event: GatewayEvent) => [{ json: event as unknown as JsonObject }],
      end: () => [{ text: '[END]' }],
      error: (error: Error) => [{ json: { error: error.message } }],
      keepAlive: () => [],
    }),
    encodeWhole: () => {
      const events: GatewayEvent[] = [];
      return {
        event: (event: GatewayEvent) => void events.push(event),
        end: () => ({ events }) as unknown as JsonObject,
      };
    },
  };
  return {
    name,
    routes: [],
    codecs: { chat: codec, 'count-tokens': codec },
    errorReply: (error: { status: number; message: string; retryAfter?: number }) => ({
      status: error.status,
      headers: error.retryAfter === undefined ? {} : { 'retry-after': String(error.retryAfter) },
      body: { error: { message: error.message } },
    }),
    replyHeaders: (requestId: string) => ({ 'x-request-id': requestId }),
  } as unknown as Format;
}

/** Input of a call of the demo channel. */
export interface DemoRequest {
  readonly text?: string;
  readonly messages?: readonly Message[];
  readonly tools?: readonly Tool[];
  readonly toolChoice?: ToolChoice;
  readonly settings?: ChatSettings;
  readonly model?: string;
  readonly format?: string;
  readonly stream?: boolean;
  readonly operation?: 'chat' | 'count-tokens';
  readonly extra?: ChatRequest['extra'];
  readonly options?: Readonly<Record<string, unknown>>;
}

/** A user message of one text. */
export function user(text: string): Message {
  return { role: 'user', content: [{ type: 'text', text }] };
}

/** Opens a call of a demo channel, as the gateway does. */
export function openDemo(input: DemoRequest, made = testCall()): Promise<Upstream> {
  const format = input.format ?? 'chat-completions';
  const model = input.model ?? 'demo';
  const request: ChatRequest = {
    operation: input.operation ?? 'chat',
    format,
    model,
    stream: input.stream ?? true,
    system: [],
    messages: input.messages ?? [user(input.text ?? 'hello')],
    tools: input.tools ?? [],
    ...(input.toolChoice === undefined ? {} : { toolChoice: input.toolChoice }),
    ...(input.extra === undefined ? {} : { extra: input.extra }),
    settings: input.settings ?? {},
  };
  const wire: UpstreamRequest = {
    operation: request.operation,
    format,
    model,
    stream: request.stream,
    path: '/anywhere',
    query: {},
    headers: {},
    body: JSON.stringify(request),
  };
  const parts = demo.spec.setup(
    demo.spec.options?.parse(input.options ?? {}) as never,
    {
      log: undefined as never,
      http: undefined as never,
      sockets: undefined as never,
      download: undefined as never,
      keys: [],
      format: plainFormat,
      onClose: () => {},
    } as ChannelTools,
  );
  return parts.open(made.call, wire);
}

/** Reply of the demo channel. */
export interface DemoReply {
  readonly status: number;
  readonly headers: Upstream['headers'];
  readonly events: readonly GatewayEvent[];
  readonly body: string;
  readonly error?: unknown;
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly { readonly id: string; readonly name: string; readonly input: string }[];
  readonly finish: readonly Extract<GatewayEvent, { type: 'finish' }>[];
  readonly usage: Usage | undefined;
}

/** Calls the demo channel and collects its reply. */
export async function readDemo(request: DemoRequest): Promise<DemoReply> {
  const upstream = await openDemo(request);
  const { bytes, error } = await outcome(upstream);
  const body = bytes.toString();
  const events = upstream.headers['content-type'] === 'text/event-stream' ? streamed(body) : whole(body);
  return {
    status: upstream.status,
    headers: upstream.headers,
    body,
    events,
    ...(error === undefined ? {} : { error }),
    text: joined(events, 'text-delta'),
    reasoning: joined(events, 'reasoning-delta'),
    calls: events.flatMap((event) =>
      event.type === 'tool-start'
        ? [{ id: event.id, name: event.name, input: inputOf(events, event.block) }]
        : [],
    ),
    finish: events.filter((event) => event.type === 'finish'),
    usage: events.findLast((event) => event.type === 'usage')?.usage,
  };
}

function streamed(body: string): GatewayEvent[] {
  return parseSse(body).flatMap(({ data }) => {
    try {
      return [JSON.parse(data) as GatewayEvent];
    } catch {
      return [];
    }
  });
}

function whole(body: string): GatewayEvent[] {
  try {
    return (JSON.parse(body) as { events?: GatewayEvent[] }).events ?? [];
  } catch {
    return [];
  }
}

function joined(events: readonly GatewayEvent[], type: 'text-delta' | 'reasoning-delta'): string {
  return events.map((event) => (event.type === type ? event.text : '')).join('');
}

function inputOf(events: readonly GatewayEvent[], block: number): string {
  return events
    .map((event) => (event.type === 'tool-delta' && event.block === block ? event.input : ''))
    .join('');
}

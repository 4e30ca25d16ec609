/** Events with which the replies of each format show calls of servers' tools. */
import { randomBytes } from 'node:crypto';
import type { GatewayEvent, JsonObject } from 'sluice';
import type { ListedServer, OfferedTool } from './catalog.ts';
import { parseObject } from './json.ts';
import type { CallResult } from './results.ts';

/** A call as a reply shows it. */
export interface ShownCall {
  readonly offered: OfferedTool;
  readonly input: string;
  /** The request for approval that allowed it. */
  readonly approval?: string | undefined;
}

/** The events of one call. */
export interface CallEvents {
  readonly begins: readonly GatewayEvent[];
  ends(result: CallResult): readonly GatewayEvent[];
}

/** End of a reply that a limit ended. */
export type LimitFinish = Pick<Extract<GatewayEvent, { type: 'finish' }>, 'reason' | 'raw' | 'format'>;

/** Representation of tool calls in one format. */
export interface ReplyFormat {
  /** True when replies show calls. Where they do not, the history of the client cannot hold them. */
  readonly showsCalls: boolean;
  /** True when the texts of several rounds become one. */
  readonly joinsTexts: boolean;
  readonly limit: LimitFinish;
  listed(server: ListedServer): readonly GatewayEvent[];
  call(shown: ShownCall): CallEvents;
  approval(shown: ShownCall): readonly GatewayEvent[];
}

/** Numbers above those that providers give to their parts. */
let lastIndex = 1_000_000;

function nextIndex(): number {
  lastIndex = lastIndex >= 2_000_000 ? 1_000_000 : lastIndex + 1;
  return lastIndex;
}

function randomId(prefix: string): string {
  return `${prefix}_${randomBytes(24).toString('hex')}`;
}

function opaque(format: string, value: JsonObject): GatewayEvent {
  return { type: 'opaque', format, value, choice: 0 };
}

/** An item of Responses: its first event, those in between, and its last. */
class Item {
  readonly id: string;
  readonly #index = nextIndex();

  constructor(prefix: string) {
    this.id = randomId(prefix);
  }

  added(item: JsonObject): GatewayEvent {
    return this.#event('response.output_item.added', { item: { id: this.id, ...item } });
  }

  event(type: string, fields: JsonObject = {}): GatewayEvent {
    return this.#event(type, { item_id: this.id, ...fields });
  }

  done(item: JsonObject): GatewayEvent {
    return this.#event('response.output_item.done', { item: { id: this.id, ...item } });
  }

  #event(type: string, fields: JsonObject): GatewayEvent {
    return opaque('responses', { type, output_index: this.#index, ...fields });
  }
}

const responses: ReplyFormat = {
  showsCalls: true,
  joinsTexts: false,
  limit: { reason: 'other', raw: 'max_tool_calls', format: 'responses' },
  listed({ server: { label }, tools }) {
    const item = new Item('mcpl');
    const begun = { type: 'mcp_list_tools', server_label: label };
    return [
      item.added({ ...begun, tools: [] }),
      item.event('response.mcp_list_tools.in_progress'),
      item.event('response.mcp_list_tools.completed'),
      item.done({
        ...begun,
        tools: tools.map(({ name, description, inputSchema, annotations }) => ({
          name,
          description: description ?? null,
          input_schema: inputSchema as JsonObject,
          annotations: (annotations as JsonObject | undefined) ?? null,
        })),
        error: null,
      }),
    ];
  },
  call({ offered: { server, tool }, input, approval }) {
    const item = new Item('mcp');
    const begun = {
      type: 'mcp_call',
      server_label: server.label,
      name: tool.name,
      approval_request_id: approval ?? null,
    };
    return {
      begins: [
        item.added({ ...begun, status: 'in_progress', arguments: '', output: null, error: null }),
        item.event('response.mcp_call.in_progress'),
        item.event('response.mcp_call_arguments.delta', { delta: input }),
        item.event('response.mcp_call_arguments.done', { arguments: input }),
      ],
      ends: ({ text, isFailed, error }) => [
        item.event(`response.mcp_call.${isFailed ? 'failed' : 'completed'}`),
        item.done({
          ...begun,
          status: isFailed ? 'failed' : 'completed',
          arguments: input,
          output: isFailed ? null : text,
          error: error ?? null,
        }),
      ],
    };
  },
  approval({ offered: { server, tool }, input }) {
    const item = new Item('mcpr');
    const request = {
      type: 'mcp_approval_request',
      server_label: server.label,
      name: tool.name,
      arguments: input,
    };
    return [item.added(request), item.done(request)];
  },
};

const messages: ReplyFormat = {
  showsCalls: true,
  joinsTexts: false,
  limit: { reason: 'pause' },
  listed: () => [],
  call({ offered: { server, tool }, input }) {
    const id = randomId('mcptoolu');
    const name = { name: tool.name, server_name: server.label };
    return {
      begins: [
        ...messagesBlock(
          { type: 'mcp_tool_use', id, ...name, input: {} },
          JSON.stringify(parseObject(input) ?? {}),
        ),
      ],
      ends: ({ text, isFailed }) =>
        messagesBlock({
          type: 'mcp_tool_result',
          tool_use_id: id,
          is_error: isFailed,
          content: [{ type: 'text', text }],
        }),
    };
  },
  approval: () => [],
};

function messagesBlock(block: JsonObject, input?: string): readonly GatewayEvent[] {
  const index = nextIndex();
  const event = (type: string, fields: JsonObject = {}): GatewayEvent =>
    opaque('messages', { type, index, ...fields });
  return [
    event('content_block_start', { content_block: block }),
    ...(input === undefined
      ? []
      : [event('content_block_delta', { delta: { type: 'input_json_delta', partial_json: input } })]),
    event('content_block_stop'),
  ];
}

/** Formats that have no place for calls which the client does not make. */
const hidden = (limit: LimitFinish): ReplyFormat => ({
  showsCalls: false,
  joinsTexts: true,
  limit,
  listed: () => [],
  call: () => ({ begins: [], ends: () => [] }),
  approval: () => [],
});

const formats: ReadonlyMap<string, ReplyFormat> = new Map([
  ['responses', responses],
  ['messages', messages],
  ['chat-completions', hidden({ reason: 'length' })],
  ['generate-content', hidden({ reason: 'other', raw: 'TOO_MANY_TOOL_CALLS', format: 'generate-content' })],
]);

/** Returns how a format shows calls. */
export function replyFormatOf(format: string): ReplyFormat {
  return formats.get(format) ?? hidden({ reason: 'length' });
}

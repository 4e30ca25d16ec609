/** Replaces items about servers' tools, which only one format has, in earlier turns by calls and results that every model reads. */
import type { Block, JsonObject, JsonValue, Message } from 'sluice';
import { functionName, type OfferedTool, type ToolCatalog } from './catalog.ts';
import { isObject, listOf } from './json.ts';
import { isMcpBlock } from './requests/index.ts';

/** Call that the client has approved and that has not run yet. */
export interface ApprovedCall {
  /** Id of the request for approval. */
  readonly request: string;
  readonly offered: OfferedTool | undefined;
  readonly input: string;
}

/** The turns of a request. */
export interface History {
  readonly messages: readonly Message[];
  readonly approved: readonly ApprovedCall[];
  /** Labels of servers whose tools an earlier reply has listed. */
  readonly listedLabels: ReadonlySet<string>;
}

/** Returns the turns with calls and results in place of items. The calls that the client has just approved are at the end, without results. */
export function readHistory(messages: readonly Message[], catalog: ToolCatalog): History {
  if (!messages.some(({ content }) => content.some(isMcpBlock)))
    return { messages, approved: [], listedLabels: new Set() };
  const items = messages.flatMap(({ content }) =>
    content.flatMap((block) => (isMcpBlock(block) ? [valueOf(block)] : [])),
  );
  const reader = new HistoryReader(items, catalog);
  const read = joined(messages.flatMap((message) => reader.message(message)));
  return { messages: read, approved: reader.approved, listedLabels: reader.listedLabels };
}

function valueOf(block: Block): JsonObject {
  return block.type === 'opaque' ? block.value : {};
}

class HistoryReader {
  readonly approved: ApprovedCall[] = [];
  readonly listedLabels = new Set<string>();
  readonly #catalog: ToolCatalog;
  /** Responses of the client to requests for approval, by the id of the request. */
  readonly #answers = new Map<string, JsonObject>();
  /** Requests whose calls have run. */
  readonly #ran = new Set<string>();

  constructor(items: readonly JsonObject[], catalog: ToolCatalog) {
    this.#catalog = catalog;
    for (const item of items) {
      if (item['type'] === 'mcp_approval_response')
        this.#answers.set(String(item['approval_request_id']), item);
      if (item['type'] === 'mcp_call' && typeof item['approval_request_id'] === 'string')
        this.#ran.add(item['approval_request_id']);
      if (item['type'] === 'mcp_list_tools') this.listedLabels.add(String(item['server_label']));
    }
  }

  /** Returns a message as messages without items. */
  message(message: Message): readonly Message[] {
    if (!message.content.some(isMcpBlock)) return [message];
    const turns: (Message & { readonly content: Block[] })[] = [];
    const append = (role: Message['role'], block: Block): void => {
      const last = turns.at(-1);
      if (last?.role === role) last.content.push(block);
      else if (turns.length === 0 && role === message.role) turns.push({ ...message, content: [block] });
      else turns.push({ role, content: [block], ...(message.at === undefined ? {} : { at: message.at }) });
    };
    for (const block of message.content)
      if (!isMcpBlock(block)) append(message.role, block);
      else for (const { role, block: added } of this.#item(valueOf(block), block.at)) append(role, added);
    return turns;
  }

  #item(
    item: JsonObject,
    at: string | undefined,
  ): readonly { readonly role: 'assistant' | 'tool'; readonly block: Block }[] {
    const location = at === undefined ? {} : { at };
    const id = String(item['id']);
    const callBlock = (): Block => ({
      type: 'tool-call',
      id,
      name: this.#nameOf(item),
      input: inputOf(item),
      ...location,
    });
    const resultBlock = (text: string, failed: boolean): Block => ({
      type: 'tool-result',
      id,
      name: this.#nameOf(item),
      content: [{ type: 'text', text }],
      plain: true,
      ...(failed ? { failed } : {}),
      ...location,
    });
    switch (item['type']) {
      case 'mcp_call': {
        const { output, error } = item;
        const failed = error !== undefined && error !== null;
        const text = failed ? errorText(error) : typeof output === 'string' ? output : '';
        return [
          { role: 'assistant', block: callBlock() },
          { role: 'tool', block: resultBlock(text, failed) },
        ];
      }
      case 'mcp_tool_use':
        return [{ role: 'assistant', block: callBlock() }];
      case 'mcp_tool_result': {
        const block = resultBlock(contentText(item['content']), item['is_error'] === true);
        return [{ role: 'tool', block: { ...block, id: String(item['tool_use_id']) } as Block }];
      }
      case 'mcp_approval_request':
        return this.#approval(item, callBlock, resultBlock);
      default:
        return [];
    }
  }

  /** Runs an approved call before the next request to the model. A rejected one becomes a failed call. */
  #approval(
    item: JsonObject,
    callBlock: () => Block,
    resultBlock: (text: string, failed: boolean) => Block,
  ): readonly { readonly role: 'assistant' | 'tool'; readonly block: Block }[] {
    const id = String(item['id']);
    if (this.#ran.has(id)) return [];
    const answer = this.#answers.get(id);
    if (answer?.['approve'] === true) {
      const offered = this.#catalog.ofServer(String(item['server_label']), String(item['name']));
      this.approved.push({ request: id, offered, input: inputOf(item) });
      return [{ role: 'assistant', block: callBlock() }];
    }
    const reason = typeof answer?.['reason'] === 'string' ? ` ${answer['reason']}` : '';
    const text =
      answer === undefined
        ? 'The user has not approved this call.'
        : `The user has declined this call.${reason}`;
    return [
      { role: 'assistant', block: callBlock() },
      { role: 'tool', block: resultBlock(text, true) },
    ];
  }

  #nameOf(item: JsonObject): string {
    const label = String(item['server_label'] ?? item['server_name']);
    const name = String(item['name'] ?? 'tool');
    return this.#catalog.ofServer(label, name)?.name ?? functionName(name);
  }
}

function inputOf({ arguments: written, input }: JsonObject): string {
  return typeof written === 'string' ? written : JSON.stringify(isObject(input) ? input : {});
}

/** Texts of a result: a string, or parts. */
function contentText(content: JsonValue | undefined): string {
  if (typeof content === 'string') return content;
  return listOf(content)
    .map((part) => (isObject(part) && typeof part['text'] === 'string' ? part['text'] : ''))
    .join('\n');
}

function errorText(error: JsonValue | undefined): string {
  if (!isObject(error)) return String(error);
  const { message, content } = error;
  return typeof message === 'string' ? message : contentText(content);
}

/** Puts results of tools before the next text of the user, in one turn, because providers require that. */
function joined(messages: readonly Message[]): readonly Message[] {
  const turns: Message[] = [];
  for (const message of messages) {
    const last = turns.at(-1);
    if (last?.role === 'tool' && message.role === 'user' && startsWithResult(message))
      turns[turns.length - 1] = { ...message, content: [...last.content, ...message.content] };
    else turns.push(message);
  }
  return turns;
}

function startsWithResult({ content }: Message): boolean {
  return content[0]?.type === 'tool-result';
}

/** Encodes the history of a Responses request: `instructions` and `input`. */
import type { Block, ChatRequest, Message } from '../../../model/chat.ts';
import { isObject, type JsonObject, type JsonValue, type MutableObject } from '../../../model/json.ts';
import { joinedTurns } from '../../_shared/join-turns.ts';
import { withoutOrphans, writeCall, writeOutput, writeReasoningItem } from './calls.ts';
import { writeContent } from './parts.ts';
import { putBack } from '../../_shared/extra.ts';
import { formatName, kept, own } from '../wire.ts';
import { dropBeside, dropField, refuse, typeName, type Scope } from '../../_openai/scope.ts';

/** `instructions` and `input` of the wire. */
export interface WrittenInput {
  readonly instructions?: string;
  /** Absent if a client of this format sent none and there is no content. */
  readonly input?: string | readonly JsonObject[];
}

/** Encodes the whole history as items. `asides` are the items of the client that are no turns; each is put back at its position. */
export function writeInput(request: ChatRequest, asides: readonly JsonObject[], scope: Scope): WrittenInput {
  const { $input } = own(request.extra);
  const system = [...request.system];
  const standing = instructionsOf(system, scope);
  const writer = new ItemWriter(asides, scope);
  for (const message of system) writer.add(message);
  const messages = scope.foreign ? joinedTurns(request) : request.messages;
  for (const message of messages) {
    const isForUser = message.role === 'system' && scope.target.traits.midSystem === false;
    writer.add(isForUser ? asUserMessage(message, scope) : message);
  }
  const written = writer.end();
  const items = scope.foreign ? withoutOrphans(written) : written;
  const [only] = items;
  if ($input === 'string' && items.length === 1 && own(messages[0]?.extra).$message === 'string')
    return { ...standing, input: typeof only?.content === 'string' ? only.content : items };
  return items.length === 0 && !scope.foreign && $input === undefined
    ? standing
    : { ...standing, input: items };
}

/**
 * Removes the message that becomes `instructions` from the list: the one that the client wrote there, else one that the gateway added; for a client
 * of another format the first one, where it is plain text.
 */
function instructionsOf(system: Message[], scope: Scope): { readonly instructions?: string } {
  const written = system.findIndex((message) => own(message.extra).$instructions === true && isText(message));
  const added = system.findIndex(
    (message) => message.at === undefined && message.plain === true && isText(message),
  );
  const index = scope.foreign ? 0 : written >= 0 ? written : added;
  const message = system[index];
  if (message === undefined || (scope.foreign && !(isText(message) && message.content.length === 1)))
    return {};
  system.splice(index, 1);
  dropBeside(message, scope);
  const text = writeContent(message.content, true, scope, 'system');
  return typeof text === 'string' ? { instructions: text } : {};
}

function isText(message: Message): boolean {
  return message.content.every(
    (block) => block.type === 'text' && block.cache === undefined && block.extra?.[formatName] === undefined,
  );
}

/** Turns an instruction inside the history into a user message, for models that accept instructions at the beginning only. */
function asUserMessage(message: Message, scope: Scope): Message {
  dropField(message, 'role', scope);
  const content = message.content.map((block) =>
    block.type === 'text' ? { ...block, text: `<system>${block.text}</system>` } : block,
  );
  return { ...message, role: 'user', content };
}

/** Writes turns as items, in order. */
class ItemWriter {
  readonly #items: JsonObject[] = [];
  readonly #asides: readonly JsonObject[];
  #nextAside = 0;
  readonly #scope: Scope;

  constructor(asides: readonly JsonObject[], scope: Scope) {
    this.#asides = asides;
    this.#scope = scope;
  }

  add(message: Message): void {
    const scope = this.#scope;
    this.#asidesBefore(Number(/^input\[(\d+)\]/.exec(message.at ?? '')?.[1] ?? Number.NaN));
    dropBeside(message, scope);
    if (own(message.extra).$message !== undefined) {
      this.#items.push(messageItem(message, message.content, scope));
      return;
    }
    let parts: Block[] = [];
    const flush = (): void => {
      if (parts.length > 0) this.#writeMessage(message, parts);
      parts = [];
    };
    for (const block of message.content) {
      if (isPart(block)) parts.push(block);
      else if (block.type === 'opaque' && block.format !== formatName)
        refuse(block, `content of type ${typeName(block.value)}`, scope);
      else {
        flush();
        this.#item(block);
      }
    }
    flush();
  }

  end(): readonly JsonObject[] {
    this.#asidesBefore(Number.POSITIVE_INFINITY);
    return this.#items;
  }

  /** Writes the items whose position is before this index. */
  #asidesBefore(index: number): void {
    while (Number(this.#asides[this.#nextAside]?.index) < index) {
      const item = this.#asides[this.#nextAside]?.item;
      this.#nextAside += 1;
      if (isObject(item)) this.#items.push(item);
    }
  }

  /** Writes a message, unless its content is empty. */
  #writeMessage(message: Message, parts: readonly Block[]): void {
    const item = messageItem(message, parts, this.#scope);
    if (!isEmpty(item.content)) this.#items.push(item);
  }

  #item(block: Block): void {
    const scope = this.#scope;
    const item =
      block.type === 'reasoning'
        ? writeReasoningItem(block, scope)
        : block.type === 'tool-call'
          ? writeCall(block, scope)
          : block.type === 'tool-result'
            ? writeOutput(block, scope)
            : block.type === 'opaque'
              ? block.value
              : undefined;
    if (item !== undefined) this.#items.push(item);
  }
}

function isPart(block: Block): boolean {
  return !['reasoning', 'tool-call', 'tool-result', 'opaque'].includes(block.type);
}

function isEmpty(content: JsonValue | undefined): boolean {
  return content === '' || (Array.isArray(content) && content.length === 0);
}

function messageItem(message: Message, blocks: readonly Block[], scope: Scope): JsonObject {
  const { role: heldRole, ...held } = kept(message.extra, '$item') ?? {};
  const content = writeContent(blocks, message.plain, scope, message.role);
  const wire: MutableObject = scope.foreign ? { type: 'message' } : { ...held };
  wire.role = message.role === 'tool' ? 'user' : message.role;
  wire.content = content;
  if (message.role === 'system')
    wire.role = scope.foreign ? (scope.target.traits.systemRole ?? 'system') : (heldRole ?? 'system');
  putBack(wire, own(message.extra));
  return wire;
}

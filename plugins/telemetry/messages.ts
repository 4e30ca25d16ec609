/** Writes the messages, instructions and tools of a call as JSON attributes of the GenAI conventions, cut to a maximum number of bytes. */
import type { Block, ChatRequest, Message, Tool } from 'sluice';
import type { Redactor } from './redact.ts';
import { argumentsOf, type Part, type ReplyText } from './reply-text.ts';
import { word } from './settings.ts';

/** Cuts and redacts the texts of one attribute. */
interface Writing {
  readonly redact: Redactor;
  /** Maximum number of bytes of the attribute. */
  readonly maxBytes: number;
}

/** Smallest number of characters to which the texts of a message are cut so that it fits. */
const shortest = 16;

/** Maximum number of parts of one message: the last ones are kept. */
const maxParts = 200;

/**
 * Returns `gen_ai.input.messages`. The last messages are kept whole as far as they fit, and a note stands for those before them: what is new in
 * a conversation stands at its end.
 */
export function inputMessages({ messages }: ChatRequest, writing: Writing): string {
  return lastWithin(
    messages.map((message) => (length: number) => {
      const redact = within(length, writing.redact);
      return {
        role: message.role,
        parts: message.content.slice(-maxParts).map((block) => partOf(block, redact)),
      };
    }),
    writing.maxBytes,
    (count) => ({
      role: 'system',
      parts: [{ type: 'text', content: `(${count} earlier messages are left out)` }],
    }),
  );
}

/** Returns `gen_ai.system_instructions`; undefined where a request has none. */
export function systemInstructions({ system }: ChatRequest, writing: Writing): string | undefined {
  const blocks = system.flatMap(({ content }) => content);
  if (blocks.length === 0) return undefined;
  return lastWithin(
    blocks.map((block) => (length: number) => partOf(block, within(length, writing.redact))),
    writing.maxBytes,
    (count) => ({ type: 'text', content: `(${count} earlier parts are left out)` }),
  );
}

/** Returns `gen_ai.tool.definitions`; undefined where a request has none. */
export function toolDefinitions({ tools }: ChatRequest, writing: Writing): string | undefined {
  if (tools.length === 0) return undefined;
  return lastWithin(
    tools.map((tool) => (length: number) => definitionOf(tool, within(length, writing.redact))),
    writing.maxBytes,
    (count) => ({ type: 'function', name: `(${count} earlier tools are left out)` }),
  );
}

/** Returns `gen_ai.output.messages`: a message for each choice. */
export function outputMessages(text: ReplyText, finishReasons: readonly string[], writing: Writing): string {
  const full = text.choices((one) => writing.redact(one, writing.maxBytes));
  return lastWithin(
    full.map((parts, index) => (length: number) => ({
      role: 'assistant',
      parts: length >= writing.maxBytes ? parts : parts.map((part) => shortened(part, length)),
      finish_reason: finishReasons[index] ?? 'error',
    })),
    writing.maxBytes,
    (count) => ({
      role: 'assistant',
      parts: [{ type: 'text', content: `(${count} choices are left out)` }],
      finish_reason: 'error',
    }),
  );
}

/** Returns a function that redacts texts which together have at most so many characters. Those behind are left out without being searched. */
function within(length: number, redact: Redactor): (text: string) => string {
  let left = length;
  return (text) => {
    if (left <= 0) return text === '' ? '' : '…';
    const shown = redact(text, left);
    left -= shown.length;
    return shown;
  };
}

/**
 * Returns a JSON array of as many of the last entries as fit into a number of bytes. An entry is made with a maximum length of its texts. Of
 * the last one texts are cut until it fits. Work is linear in the bytes that are kept.
 */
function lastWithin(
  entries: readonly ((length: number) => unknown)[],
  maxBytes: number,
  note: (count: number) => unknown,
): string {
  // Brackets, and the note with its comma.
  let left = maxBytes - 2 - Buffer.byteLength(JSON.stringify(note(entries.length))) - 1;
  const kept: string[] = [];
  for (let index = entries.length - 1; index >= 0; index -= 1) {
    const entry = entries[index];
    if (entry === undefined) break;
    let text = JSON.stringify(entry(maxBytes));
    // Truncates the last entry instead of dropping it.
    if (kept.length === 0)
      for (
        let length = maxBytes;
        Buffer.byteLength(text) > left && length > shortest;
        length = Math.floor(length / 2)
      )
        text = JSON.stringify(entry(Math.floor(length / 2)));
    const size = Buffer.byteLength(text) + 1;
    if (size > left) break;
    left -= size;
    kept.unshift(text);
  }
  const omitted = entries.length - kept.length;
  if (omitted > 0) kept.unshift(JSON.stringify(note(omitted)));
  return `[${kept.join(',')}]`;
}

function partOf(block: Block, redact: (text: string) => string): Part {
  switch (block.type) {
    case 'text':
    case 'refusal':
      return { type: 'text', content: redact(block.text) };
    case 'reasoning':
      return { type: 'reasoning', content: redact(block.text) };
    case 'tool-call':
      return {
        type: 'tool_call',
        id: word(block.id),
        name: word(block.name),
        arguments: argumentsOf(redact(block.input)),
      };
    case 'tool-result':
      return { type: 'tool_call_response', id: word(block.id), response: redact(textOf(block.content)) };
    case 'image':
    case 'audio':
    case 'video':
    case 'file':
      return mediaPart(block, redact);
    case 'opaque':
      return { type: 'opaque' };
  }
}

/** Returns a part that names a medium without its data. */
function mediaPart(
  { type, source }: Extract<Block, { readonly source: unknown }>,
  redact: (text: string) => string,
): Part {
  const mime = source.mimeType === undefined ? {} : { mime_type: word(source.mimeType) };
  switch (source.kind) {
    case 'url':
      return { type: 'uri', modality: type, ...mime, uri: redact(source.url) };
    case 'file':
      return { type: 'file', modality: type, ...mime, file_id: word(source.id) };
    case 'data':
      return { type, ...mime, base64_length: source.data.length };
  }
}

function textOf(content: Message['content']): string {
  return content.map((block) => ('text' in block ? block.text : `(${block.type})`)).join('\n');
}

function definitionOf(tool: Tool, redact: (text: string) => string): unknown {
  if (tool.type !== 'function' && tool.type !== 'custom')
    return { type: tool.type, name: word(tool.name ?? tool.type) };
  const description = tool.description === undefined ? {} : { description: redact(tool.description) };
  return { type: 'function', name: word(tool.name), ...description };
}

/** Returns a part of a response with its text cut again. Arguments of a tool that are too long become a text. */
function shortened(part: Part, length: number): Part {
  const { content, arguments: given } = part;
  if (typeof content === 'string') return { ...part, content: cut(content, length) };
  return given === undefined ? part : { ...part, arguments: cut(JSON.stringify(given), length) };
}

function cut(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length).toWellFormed()}…`;
}

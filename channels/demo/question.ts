/** Reads from a chat request what decides the answer of the demo channel: text, switches, attachments, tool results and input tokens. */
import { createHash } from 'node:crypto';
import type {
  Block,
  ChatRequest,
  Message,
  Reasoning,
  Tool,
  UpstreamRequest,
  MediaBlock,
  ToolResultBlock,
} from 'sluice';
import { lastUserText } from './seals.ts';
import { readSwitches, type Switches } from './switches.ts';
import { inputUsage, type InputUsage } from './usage.ts';

/** A client's tool that the demo can call. */
export type CallableTool = Extract<Tool, { type: 'function' | 'custom' }>;

/** Facts about one request. */
export interface Question {
  readonly request: ChatRequest;
  readonly wire: UpstreamRequest;
  /** Text of the last user message that has any. */
  readonly text: string;
  readonly switches: Switches;
  /** Pictures, sounds and files of that message. */
  readonly attachments: readonly MediaBlock[];
  /** Results of tools that ended the conversation so far, and the names of their tools. */
  readonly results: readonly { readonly name: string; readonly result: ToolResultBlock }[];
  /** Number of tool calls since that message. */
  readonly round: number;
  readonly tools: readonly CallableTool[];
  readonly input: InputUsage;
  /** Undefined when the model is not to think. */
  readonly reasoning: Reasoning | undefined;
  /** True when the client itself requested reasoning, and so must send it back. */
  readonly requestedReasoning: boolean;
}

/** Understands a decoded request. Throws 400 when a magic word is misspelt. */
export function understand(request: ChatRequest, wire: UpstreamRequest): Question {
  const index = lastUserText(request.messages);
  const lastUser = request.messages[index];
  const text = lastUser === undefined ? '' : textOf(lastUser.content);
  const since = request.messages.slice(index + 1);
  const thinks = wire.model.startsWith('demo-thinking');
  return {
    request,
    wire,
    text,
    switches: readSwitches(wire.model, text),
    attachments: (lastUser?.content ?? []).filter(isMedia),
    results: lastResults(request.messages),
    round: rounds(since),
    tools: request.tools.filter((tool) => tool.type === 'function' || tool.type === 'custom'),
    input: inputUsage(request),
    reasoning: reasoningOf(request.settings.reasoning, thinks),
    requestedReasoning: reasoningOf(request.settings.reasoning, false) !== undefined,
  };
}

/** Turns of the assistant that called tools; a turn may stand in several messages, one for each call. */
function rounds(messages: readonly Message[]): number {
  let count = 0;
  let counted = false;
  for (const { role, content } of messages) {
    if (role !== 'assistant') counted = false;
    else if (!counted && content.some(({ type }) => type === 'tool-call')) {
      counted = true;
      count += 1;
    }
  }
  return count;
}

/** Returns the texts of a message, one line for each piece. */
export function textOf(content: readonly Block[]): string {
  return content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n');
}

/** Returns the type, size and digest of an attachment, so that a test can see that every byte came through. */
export function describeMedia({ type, source, name }: MediaBlock): string {
  const named = name === undefined ? '' : ` named ${name}`;
  switch (source.kind) {
    case 'data': {
      const bytes = Buffer.from(source.data, 'base64');
      const digest = createHash('sha256').update(bytes).digest('hex').slice(0, 8);
      return `${type}${named} (${source.mimeType}, ${bytes.length} bytes, sha256 ${digest})`;
    }
    case 'url':
      return `${type}${named} at ${source.url}`;
    case 'file':
      return `${type}${named} with the id ${source.id}`;
  }
}

function isMedia(block: Block): block is MediaBlock {
  return block.type === 'image' || block.type === 'audio' || block.type === 'video' || block.type === 'file';
}

function reasoningOf(requested: Reasoning | undefined, byDefault: boolean): Reasoning | undefined {
  if (requested?.mode === 'off' || requested?.effort === 'none' || requested?.budget === 0) return undefined;
  const { mode, effort, budget, show } = requested ?? {};
  const wanted = mode !== undefined || effort !== undefined || budget !== undefined || show === true;
  return wanted || byDefault ? (requested ?? {}) : undefined;
}

function lastResults(messages: readonly Message[]): Question['results'] {
  const names = new Map<string, string>();
  for (const { content } of messages)
    for (const block of content) if (block.type === 'tool-call') names.set(block.id, block.name);
  const last = messages.findLastIndex(({ role }) => role === 'assistant');
  return messages
    .slice(last + 1)
    .flatMap(({ content }) => content)
    .filter((block) => block.type === 'tool-result')
    .map((result) => ({ name: result.name ?? names.get(result.id) ?? result.id, result }));
}

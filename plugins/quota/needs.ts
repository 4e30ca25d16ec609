/** Computes upper bounds of the tokens of a chat from its request alone: input, images, number and limit of answers, thinking. */
import {
  isObject,
  type Block,
  type ChatRequest,
  type JsonObject,
  type JsonValue,
  type Modality,
  type Extra,
  type MediaBlock,
  type Call,
} from 'sluice';

/** Assumed tokens of a message, a tool call or a tool result besides its text. */
export const frame = 8;

/** Assumed tokens between two parts of a message. */
const joint = 2;

/** Assumed tokens of the instructions that providers add for tools: once for each request, and once for each tool that the provider describes. */
const toolInstructions = 800;

/** Tools that a provider describes and the client runs, so that their results come in the next request. Other hosted tools may add any input. */
const clientRun = /^(bash|text_editor|memory|computer|local_shell|shell|apply_patch)/;

/** Members that add input which is not in the request: earlier turns, prompts and contexts that the provider stores. */
const referring = ['previous_response_id', 'conversation', 'cachedContent', 'cached_content', 'mcp_servers'];

/** A chat request, of a call or of a line of a batch. */
export type BoundedChat = Pick<Call, 'body' | 'codec'> & {
  readonly request: ChatRequest;
  readonly edits: Pick<Call['edits'], 'settings'>;
  /** True when the gateway calls the MCP servers of the request, whose results come in further requests with bounds of their own. */
  readonly callsServers?: boolean;
};

/** Upper bounds of a chat before the limits of its model are applied. A token counts as one byte. */
export interface ChatNeeds {
  /** Tokens of the content of the request. */
  readonly input: number;
  /** Number of images, whose tokens depend on the model. */
  readonly images: number;
  /** Kinds of media that the input may have. */
  readonly media: ReadonlySet<Modality>;
  /** True where a part of the input has an unknown length and may fill the context. */
  readonly unseen: boolean;
  /** Number of answers that are generated, also those that the client does not get. */
  readonly answers: number;
  /** Output limit of each answer: the higher one where the request has two, because the provider may apply either. */
  readonly limit: number | undefined;
  /** Tokens of thinking, which may be added to each answer without an output limit. */
  readonly thinking: number;
  /** Additional output tokens for a prediction. */
  readonly predicted: number;
}

/** Returns the upper bounds of a chat. */
export function needsOf(chat: BoundedChat): ChatNeeds {
  const { request, body } = chat;
  const { callsServers = false } = chat;
  const { bytes, frames, joints, images, sound, described, unseen } = sizeOf(request, callsServers);
  const refers =
    referring.some((name) => (body[name] ?? null) !== null && !(callsServers && name === 'mcp_servers')) ||
    isObject(body.prompt);
  return {
    input:
      bytes +
      frames * frame +
      joints * joint +
      sound +
      (request.tools.length > 0 ? (1 + described) * toolInstructions : 0),
    images,
    media: mediaOf(images, sound, unseen || refers),
    unseen: unseen || refers,
    answers: answersOf(chat),
    limit: limitOf(chat),
    thinking: Math.max(0, request.settings.reasoning?.budget ?? 0),
    predicted: body.prediction === undefined ? 0 : lengthOf(body.prediction),
  };
}

/** Returns the kinds of media in the input: all of them where parts of it are unknown. */
function mediaOf(images: number, sound: number, unseen: boolean): ReadonlySet<Modality> {
  if (unseen) return anything;
  if (images === 0 && sound === 0) return nothing;
  const media = new Set<Modality>();
  if (images > 0) media.add('image');
  if (sound > 0) media.add('audio');
  return media;
}

const nothing: ReadonlySet<Modality> = new Set();
const anything: ReadonlySet<Modality> = new Set<Modality>(['audio', 'image', 'video']);

function limitOf({ request, edits, body }: BoundedChat): number | undefined {
  const { maxOutput } = request.settings;
  if (maxOutput === undefined) return undefined;
  const { max_tokens: other } = body;
  const both = edits.settings?.maxOutput === undefined && typeof other === 'number';
  return Math.max(0, maxOutput, both ? other : 0);
}

function answersOf({ request, body, codec }: BoundedChat): number {
  const { best_of: best, prompt } = body;
  const prompts =
    codec.format === 'text-completions' && Array.isArray(prompt) && typeof prompt[0] !== 'number'
      ? prompt.length
      : 1;
  const choices = request.settings.choices ?? 1;
  return Math.max(1, choices, typeof best === 'number' ? best : 1) * Math.max(1, prompts);
}

/** Sizes of the content of a request, collected in one pass. */
interface Size {
  /** Bytes of text in UTF-8. */
  bytes: number;
  frames: number;
  /** Number of joints between parts of messages. */
  joints: number;
  images: number;
  /** Characters of audio in base64, which has more bytes than tokens. */
  sound: number;
  /** Number of tools that the provider describes. */
  described: number;
  /** True where the tokens of a part cannot be known from the request. */
  unseen: boolean;
}

/** Tools of MCP servers, by the type or the name of an opaque tool. */
const serverTools = /^mcp(?:_toolset|Servers)?$/;

function sizeOf(request: ChatRequest, callsServers: boolean): Size {
  const size: Size = {
    bytes: 0,
    frames: 0,
    joints: 0,
    images: 0,
    sound: 0,
    described: 0,
    unseen: false,
  };
  const { system, messages, tools, toolChoice, settings, extra } = request;
  for (const message of system) addMessage(size, message);
  for (const message of messages) addMessage(size, message);
  for (const tool of tools) {
    size.bytes += lengthOfMembers(tool, lengthOfSchema);
    if (tool.type === 'function' || tool.type === 'custom') continue;
    if (tool.type === 'opaque' && callsServers && serverTools.test(String(tool.value.type ?? tool.name)))
      continue;
    if (tool.type === 'opaque' && clientRun.test(String(tool.value.type))) size.described += 1;
    else size.unseen = true;
  }
  for (const part of [toolChoice, settings.responseFormat])
    if (part !== undefined) size.bytes += lengthOfMembers(part);
  if (extra !== undefined) size.bytes += lengthOfExtra(extra);
  return size;
}

function addMessage(size: Size, { content, extra }: ChatRequest['messages'][number]): void {
  size.frames += 1;
  if (extra !== undefined) size.bytes += lengthOfExtra(extra);
  addBlocks(size, content);
}

function addBlocks(size: Size, blocks: readonly Block[]): void {
  size.joints += Math.max(0, blocks.length - 1);
  for (const block of blocks) {
    switch (block.type) {
      case 'text':
      case 'refusal':
        // The most frequent blocks: only the members that they can have are measured.
        size.bytes += Buffer.byteLength(block.text);
        if (block.extra !== undefined) size.bytes += lengthOfExtra(block.extra);
        if ('citations' in block) size.bytes += lengthOf(block.citations as unknown as JsonValue);
        break;
      case 'tool-result':
        size.frames += 1;
        size.bytes += lengthOfMembers(block, lengthOf, 'content');
        addBlocks(size, block.content);
        break;
      case 'tool-call':
        size.frames += 1;
        size.bytes +=
          Buffer.byteLength(block.id) + Buffer.byteLength(block.name) + Buffer.byteLength(block.input);
        if (block.extra !== undefined) size.bytes += lengthOfExtra(block.extra);
        break;
      case 'reasoning':
        size.bytes += lengthOfMembers(block);
        break;
      case 'opaque':
        size.bytes += lengthOfMembers(block);
        if (block.value.type === 'item_reference') size.unseen = true;
        break;
      default:
        addMedia(size, block);
    }
  }
}

function addMedia(size: Size, { type, source, extra, name = '' }: MediaBlock): void {
  size.bytes += Buffer.byteLength(name) + (extra === undefined ? 0 : lengthOfExtra(extra));
  if (type === 'image') size.images += 1;
  else if (source.kind !== 'data') size.unseen = true;
  else if (source.mimeType.startsWith('text/')) size.bytes += source.data.length;
  else if (type === 'audio') size.sound += source.data.length;
  // The size of a document or video does not determine its amount of text or its duration.
  else size.unseen = true;
}

/**
 * Returns the bytes of a part of a request as {@link lengthOf} does, without members that are never sent, and without `except`, which is measured
 * by itself.
 */
function lengthOfMembers(part: object, lengthOfMember = lengthOf, except?: string): number {
  let bytes = 0;
  for (const name in part) {
    if (name === 'type' || name === 'at' || name === except) continue;
    const value = (part as JsonObject)[name];
    if (name === 'extra') bytes += lengthOfExtra(value as unknown as Extra);
    else bytes += Buffer.byteLength(name) + lengthOfMember(value) + 4;
  }
  return bytes;
}

/** Returns the bytes of format-specific members. Those whose names begin with `$` only record a spelling, so that scalar ones count nothing. */
function lengthOfExtra(extra: Extra): number {
  let bytes = 0;
  for (const fields of Object.values(extra)) {
    for (const name in fields) {
      const value = fields[name];
      if (!name.startsWith('$')) bytes += Buffer.byteLength(name) + lengthOf(value) + 4;
      else if (typeof value === 'object') bytes += lengthOf(value);
    }
  }
  return bytes;
}

// oxlint-disable-next-line no-control-regex -- those are what is meant
const needsEscapes = /["\\\u0000-\u001f\ud800-\udfff]/;

/** Estimates the bytes of a value as JSON. Never less than the bytes of its texts. */
function lengthOf(value: JsonValue | undefined): number {
  if (typeof value === 'string')
    return Buffer.byteLength(needsEscapes.test(value) ? JSON.stringify(value) : value) + 2;
  if (typeof value === 'number') return String(value).length;
  if (typeof value !== 'object' || value === null) return 5;
  let bytes = 2;
  if (Array.isArray(value)) for (const one of value as readonly JsonValue[]) bytes += lengthOf(one) + 1;
  else if (isObject(value))
    for (const key in value) bytes += Buffer.byteLength(key) + lengthOf(value[key]) + 4;
  return bytes;
}

/**
 * As {@link lengthOf}, for schemas of tools. Those that many calls have in common are frozen, and measured once: a quarter of the CPU of what turn
 * 30 of an agent may come to (12 tools, Node 24, 2026-11-27).
 */
function lengthOfSchema(value: JsonValue | undefined): number {
  if (typeof value !== 'object' || value === null || !Object.isFrozen(value)) return lengthOf(value);
  let length = knownLengths.get(value);
  if (length === undefined) {
    length = lengthOf(value);
    knownLengths.set(value, length);
  }
  return length;
}

const knownLengths = new WeakMap<object, number>();

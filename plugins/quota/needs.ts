import {
  isObject,
  type Block,
  type ChatRequest,
  type JsonValue,
  type Modality,
  type Extra,
  type MediaBlock,
  type Call,
} from 'sluice';

/** What turns, tools and calls cost besides their words. */
export const frame = 8;

/** What may be written between the parts of a turn. */
const joint = 2;

/** What providers write of their own before the tools of a request, and for each tool that they have described themselves. */
const toolInstructions = 800;

/** Tools that a provider describes and the client runs: what they find comes in the next request. All others may read whatever they like. */
const clientRun = /^(bash|text_editor|memory|computer|local_shell|shell|apply_patch)/;

/** Fields by which a request has more input than it shows: earlier turns, prompts and contexts that the provider keeps. */
const referring = ['previous_response_id', 'conversation', 'cachedContent', 'cached_content', 'mcp_servers'];

/** A chat as it is asked for, by a call or by one line of many. */
export type AskedChat = Pick<Call, 'body' | 'codec'> & {
  readonly request: ChatRequest;
  readonly edits: Pick<Call['edits'], 'settings'>;
  /** True when the gateway calls the MCP servers of the request: what they return comes with requests that are measured by themselves. */
  readonly callsServers?: boolean;
};

/** What a chat may use at the most, as far as its model has no say in it: a token is at least a byte. */
export interface ChatNeeds {
  /** Tokens of what stands in it. */
  readonly input: number;
  /** Images, of which each model makes so many tokens as it likes. */
  readonly images: number;
  /** What may stand in it besides text. */
  readonly media: ReadonlySet<Modality>;
  /** Something in it may be as long as its model's context, and nothing tells how long it is. */
  readonly unseen: boolean;
  /** How many answers are made, whether or not the client gets them all to see. */
  readonly answers: number;
  /** The limit of each answer. Of two that both go to the provider it may keep either. */
  readonly limit: number | undefined;
  /** Tokens of thinking, which may come on top of each answer that nobody limits. */
  readonly thinking: number;
  /** Output tokens besides, of a prediction. */
  readonly predicted: number;
}

/** What a chat needs. */
export function needsOf(asked: AskedChat): ChatNeeds {
  const { request, body } = asked;
  const { callsServers = false } = asked;
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
    answers: answersOf(asked),
    limit: limitOf(asked),
    thinking: Math.max(0, request.settings.reasoning?.budget ?? 0),
    predicted: body.prediction === undefined ? 0 : lengthOf(body.prediction),
  };
}

/** Files and earlier turns that are not seen may be anything. */
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

function limitOf({ request, edits, body }: AskedChat): number | undefined {
  const { maxOutput } = request.settings;
  if (maxOutput === undefined) return undefined;
  const { max_tokens: other } = body;
  const both = edits.settings?.maxOutput === undefined && typeof other === 'number';
  return Math.max(0, maxOutput, both ? other : 0);
}

function answersOf({ request, body, codec }: AskedChat): number {
  const { best_of: best, prompt } = body;
  const prompts =
    codec.format === 'text-completions' && Array.isArray(prompt) && typeof prompt[0] !== 'number'
      ? prompt.length
      : 1;
  const choices = request.settings.choices ?? 1;
  return Math.max(1, choices, typeof best === 'number' ? best : 1) * Math.max(1, prompts);
}

/** The words of a request and what else there is in it, in one walk. */
interface Size {
  /** Of UTF-8. */
  bytes: number;
  frames: number;
  /** Between the parts of turns. */
  joints: number;
  images: number;
  /** Characters of base64 of sound: it has more bytes than tokens. */
  sound: number;
  /** Tools that the provider describes. */
  described: number;
  /** Something whose tokens nothing in the request tells. */
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
    size.bytes += lengthOfMembers(tool);
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
        // Most of what there is: its members are known.
        size.bytes += Buffer.byteLength(block.text);
        if (block.extra !== undefined) size.bytes += lengthOfExtra(block.extra);
        if ('citations' in block) size.bytes += lengthOf(block.citations as unknown as JsonValue);
        break;
      case 'tool-result': {
        const { content, ...rest } = block;
        size.frames += 1;
        size.bytes += lengthOfMembers(rest);
        addBlocks(size, content);
        break;
      }
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
  // How much text a document has, or how long a video is, its size does not tell.
  else size.unseen = true;
}

/** A part of a request without what is never sent of it, as {@link lengthOf}. */
function lengthOfMembers(part: object): number {
  let bytes = 0;
  for (const [name, value] of Object.entries(part) as readonly (readonly [string, JsonValue])[]) {
    if (name === 'extra') bytes += lengthOfExtra(value as unknown as Extra);
    else if (name !== 'type' && name !== 'at') bytes += Buffer.byteLength(name) + lengthOf(value) + 4;
  }
  return bytes;
}

/** The same of what only one format knows. How something was spelled stands under names that begin with `$`, and is no word more. */
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

/** About the bytes of a value as JSON, and no fewer than its words have. */
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

import { isChat, type Block, type ChatRequest, type JsonValue, type Units } from 'sluice';
import {
  estimateInput as estimateChat,
  isObject,
  type Call,
  type Extra,
  type MediaBlock,
  type Target,
} from 'sluice/internal';

/**
 * What calls are expected to use, and the most that they may. Budgets are measured by the most alone, far from their end and near it: so the
 * sum of what is spent and reserved is never less than what running calls can come to, however many there are. It costs no more to find.
 */

/** The most tokens of an image where its model's traits do not say it: 16,384 patches of 28 × 28. */
const mostOfImage = 16_384;

/** What turns, tools and calls cost besides their words. */
const frame = 8;

/** What may be written between the parts of a turn. */
const joint = 2;

/** What providers write of their own before the tools of a request, and for each tool that they have described themselves. */
const toolInstructions = 800;

/** Tools that a provider describes and the client runs: what they find comes in the next request. All others may read whatever they like. */
const clientRun = /^(bash|text_editor|memory|computer|local_shell|shell|apply_patch)/;

/** Instructions by which a model is asked for a summary. */
const summaryInstructions = 2_000;

/** The longest context, and the longest answer, of models whose limits nobody states. */
const longest = { context: 1_048_576, answer: 131_072 };

/** Output tokens of a text completion without a limit, as its format says. */
const usualCompletion = 16;

/** The least output limit that a responses channel is sent. */
const leastResponse = 16;

/** More than any model takes or gives: keeps nonsense out of sums of money. */
const mostTokens = 1e9;

/** What a call is expected to put in. */
export function estimateInput({ request, codec }: Call): number {
  return within(isChat(request) ? estimateChat(request) : (codec.estimate?.(request).input ?? 0));
}

/** Output tokens of a call. */
interface MostOutput {
  readonly most: number;
  /** A lower limit for each answer that the call can be sent with, and what it comes to then; absent where there is none to name. */
  readonly held?: { readonly limit: number; readonly most: number };
}

/** The most that a call may come to. */
export interface Bound {
  readonly input: number;
  readonly output: MostOutput;
  readonly units: Units;
}

/** The most that a call may come to: a token is at least a byte. `assumed` is the limit of answers that nobody limits. */
export function boundOf(call: Call, targets: readonly Target[], assumed: number): Bound {
  const { outline: request, codec } = call;
  if (!isChat(request)) {
    const expected = codec.estimate?.(request);
    const { input = 0, output = 0, units = {} } = { ...expected, ...expected?.most };
    return { input: within(input), output: { most: within(output) }, units };
  }
  const again = summarises(call) ? mostInput(call, request, targets) + summaryInstructions : 0;
  return {
    input: within(mostInput(call, request, targets) + again),
    output: mostOutput(call, targets, assumed),
    units: {},
  };
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

function sizeOf(request: ChatRequest): Size {
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

/** Fields by which a request has more input than it shows: earlier turns, prompts and contexts that the provider keeps. */
const referring = ['previous_response_id', 'conversation', 'cachedContent', 'cached_content', 'mcp_servers'];

/** The largest of the values, none of which is negative; 0 without any. */
const greatest = (values: readonly number[]): number =>
  values.reduce((largest, value) => Math.max(largest, value), 0);

function mostInput(call: Call, request: ChatRequest, targets: readonly Target[]): number {
  const { bytes, frames, joints, images, sound, described, unseen } = sizeOf(request);
  const { body, leftOut } = call;
  const refers = referring.some((name) => (body[name] ?? null) !== null) || isObject(body.prompt);
  const image = greatest(targets.map(({ traits }) => traits.imageTokens ?? mostOfImage));
  const context = greatest(targets.map(({ traits }) => traits.inputLimit ?? longest.context));
  const told = greatest(targets.map(({ channel }) => Buffer.byteLength(channel.systemPrompt?.text ?? '')));
  return (
    bytes +
    leftOut +
    frames * frame +
    joints * joint +
    images * image +
    sound +
    (request.tools.length > 0 ? (1 + described) * toolInstructions : 0) +
    (unseen || refers ? context : 0) +
    (told > 0 ? told + frame : 0)
  );
}

function mostOutput(call: Call, targets: readonly Target[], assumed: number): MostOutput {
  const asked = askedOutput(call);
  const limits = targets.map(({ traits }) => traits.outputLimit);
  const known = limits.filter((limit) => limit !== undefined);
  const model = known.length === limits.length && known.length > 0 ? greatest(known) : undefined;
  const open = model ?? greatest([longest.answer, ...known]) + thinkingOf(call);
  const least = targets.some((target) => isForeignResponses(target, call)) ? leastResponse : 1;
  const predicted = call.body.prediction === undefined ? 0 : lengthOf(call.body.prediction);
  // A summary has no limit of its own.
  const besides = predicted + (summarises(call) ? open : 0);
  const answers = answersOf(call);
  const all = (limit: number): number => within(Math.ceil(Math.max(limit, least) * answers) + besides);
  const usual = call.codec.format === 'text-completions' ? usualCompletion : assumed;
  const limit = Math.min(asked ?? usual, model ?? Number.POSITIVE_INFINITY);
  const most = all(asked ?? open);
  const heldMost = all(limit);
  return heldMost < most && call.operation === 'chat' ? { most, held: { limit, most: heldMost } } : { most };
}

/** The limit that a call asks for, for each answer. Of two that both go to the provider it may keep either. */
function askedOutput({ outline: request, edits, body }: Call): number | undefined {
  if (!isChat(request)) return undefined;
  const { maxOutput } = request.settings;
  if (maxOutput === undefined) return undefined;
  const { max_tokens: other } = body;
  const both = edits.settings?.maxOutput === undefined && typeof other === 'number';
  return Math.max(0, maxOutput, both ? other : 0);
}

/** A thinking budget may come on top of an answer that nobody limits. */
function thinkingOf({ outline: request }: Call): number {
  return isChat(request) ? Math.max(0, request.settings.reasoning?.budget ?? 0) : 0;
}

/** How many answers are made, whether or not the client gets them all to see. */
function answersOf({ outline: request, body, codec }: Call): number {
  const { best_of: best, prompt } = body;
  const choices = isChat(request) ? (request.settings.choices ?? 1) : 1;
  const prompts =
    codec.format === 'text-completions' && Array.isArray(prompt) && typeof prompt[0] !== 'number'
      ? prompt.length
      : 1;
  return Math.max(1, choices, typeof best === 'number' ? best : 1) * Math.max(1, prompts);
}

/** True where the gateway may ask for a summary of the conversation before the answer. */
function summarises({ codec, body, operation }: Call): boolean {
  return codec.format === 'responses' && operation === 'chat' && (body.context_management ?? null) !== null;
}

/** True for a target that is asked in the words of the responses format for a client of another one. */
function isForeignResponses({ traits, channel }: Target, { codec }: Call): boolean {
  const spoken = traits.formats ?? channel.speaks.chat ?? [];
  return spoken[0] === 'responses' && !spoken.includes(codec.format);
}

/** What a call is expected to use besides tokens. */
export function expectedUnits(call: Call): Units {
  const { request } = call;
  return isChat(request) ? {} : (call.codec.estimate?.(request).units ?? {});
}

function within(tokens: number): number {
  return Math.min(mostTokens, Math.max(0, tokens));
}

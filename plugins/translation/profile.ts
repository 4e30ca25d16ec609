/** Applies the traits of a model to a request that passes through: edits members at the top of its body, or decides that it must be decoded. */
import {
  isChat,
  isObject,
  type ChatRequest,
  type ChatSettings,
  type JsonObject,
  type JsonValue,
  type Message,
  type ModelTraits,
  type Loss,
} from 'sluice';
import type { MemberEdits } from 'sluice/channel-kit';
import { adaptSchema, moved, sameJson, thinksAbout, type Call, type Target } from 'sluice/internal';
import type { SettledName } from './core-types.ts';
import { encodeRequest } from './encode-request.ts';
import type { TranslationOptions } from './options.ts';
import { asStreamed, settle, type Settled } from './settle.ts';

/** Changes by the traits of a model in a request that is already in the channel's format. */
export interface Adaptation {
  /** Members at the top of the body that are replaced, or removed where the value is undefined. */
  readonly edits: MemberEdits;
  readonly losses: readonly Loss[];
}

/**
 * Returns what the traits of the target change in the client's request: nothing, members at the top of its body, or more, in which case all of it is
 * to be decoded and encoded. The encoder of the format decides what changes, as it does for translated requests.
 */
export function adapt(
  call: Call,
  target: Target,
  chosen: TranslationOptions,
): Adaptation | 'decode' | undefined {
  const { codec, operation } = call;
  const { places } = codec;
  if (places === undefined || operation !== 'chat') return undefined;
  const { outline } = call;
  if (!isChat(outline)) return undefined;
  const request = asStreamed(outline, call);
  const settled = settle(request, target.traits, codec, chosen, ignoreLoss);
  if (settled.stream !== call.stream) return 'decode';
  if (settled.request.messages !== request.messages) return 'decode';
  if (reachesInside(request, settled)) return 'decode';
  const all = settledNames(request, settled);
  if (all.length === 0 && settled.unknown.length === 0) return undefined;
  const names = all.filter((name) => name !== 'reasoning' || !isSpecWord(call, target));
  const members = new Set([...names.flatMap((name) => places(name)), ...settled.unknown]);
  if (members.size === 0) return undefined;
  // A function call of the deprecated kind has no other choice than its own.
  if (names.includes('toolChoice') && Object.hasOwn(call.bodyOutline, 'functions')) return 'decode';
  // Turns are only looked at where reasoning changes: whether it may depends on them.
  const briefly = codec.format === 'text-completions' ? request : { ...request, system: [], messages: [] };
  const found = compared(call, target, chosen, briefly, members);
  const reasons = found !== undefined && found !== 'decode' && names.includes('reasoning');
  return reasons ? compared(call, target, chosen, request, members) : found;
}

/** Losses are reported when the request is encoded. */
function ignoreLoss(): void {}

/**
 * Returns true when the client asks for reasoning in the format's official members, which are converted into the provider's elsewhere, in the bytes of
 * the body.
 */
function isSpecWord({ codec, bodyOutline }: Call, { traits }: Target): boolean {
  return codec.official !== undefined && codec.official(bodyOutline, traits, () => {}) !== bodyOutline;
}

/** Encodes the request and compares these members with those that the client wrote. */
function compared(
  call: Call,
  target: Target,
  chosen: TranslationOptions,
  request: ChatRequest,
  members: ReadonlySet<string>,
): Adaptation | 'decode' | undefined {
  const { codec, bodyOutline } = call;
  // Settings that plugins have edited differ from the client's body.
  const isPatched = call.edits.settings !== undefined;
  const losses: Loss[] = [];
  const { body, unwrapTool, customTools } = encodeRequest(call, target, codec, chosen, losses, request);
  if (unwrapTool !== undefined || customTools !== undefined) return 'decode';
  const edits: Record<string, JsonValue | undefined> = {};
  for (const member of members) {
    const value = body[member];
    if (!isPatched && isSame(value, bodyOutline[member])) continue;
    // Marks stand for long texts in it.
    if (value !== undefined && isCut(call, member)) return 'decode';
    edits[member] = value;
  }
  if (Object.keys(edits).length === 0) return undefined;
  return { edits, losses: losses.filter(({ path }) => members.has(path.split(/[.[]/, 1)[0] ?? '')) };
}

function isSame(value: JsonValue | undefined, before: JsonValue | undefined): boolean {
  return value === undefined ? before === undefined || before === null : sameJson(value, before);
}

function isCut({ omittedBytes, wire }: Call, member: string): boolean {
  return omittedBytes > 0 && wire.outline?.cut.includes(member) === true;
}

/** Returns the settings that the traits of the model change or may change. */
function settledNames(request: ChatRequest, { request: settled, traits }: Settled): readonly SettledName[] {
  const { settings, tools } = request;
  const names: SettledName[] = [];
  for (const name of traits.refuses ?? [])
    if (settings[name as keyof ChatSettings] !== undefined) names.push(name as keyof ChatSettings);
  if (traits.ranges !== undefined)
    for (const [name, range] of Object.entries(traits.ranges)) {
      const value = settings[name as keyof ChatSettings];
      if (typeof value === 'number' && moved(value, range) !== value) names.push(name as keyof ChatSettings);
    }
  if (settings.maxOutput !== undefined && traits.outputLimitField !== undefined) names.push('maxOutput');
  else if (settled.settings.maxOutput !== settings.maxOutput) names.push('maxOutput');
  if (settled.settings.reasoning !== settings.reasoning) names.push('reasoning');
  else if (settings.reasoning !== undefined && statesReasoning(traits)) names.push('reasoning');
  if (settled.toolChoice !== request.toolChoice) names.push('toolChoice');
  if (settled.tools !== tools) names.push('tools');
  if (traits.jsonObject === false && settings.responseFormat?.type === 'json') names.push('responseFormat');
  if (traits.schemaSubset !== undefined) {
    const changes = (schema: JsonObject | undefined): boolean =>
      schema !== undefined && adaptSchema(schema, traits.schemaSubset, { drop: () => {} }) !== schema;
    if (changes(settings.responseFormat?.schema)) names.push('responseFormat');
    if (tools.some((tool) => tool.type === 'function' && tool.strict === true && changes(tool.schema)))
      names.push('tools');
  }
  return names;
}

function statesReasoning({ reasoning, efforts, thinkingBudget, stopsThinking }: ModelTraits): boolean {
  return (reasoning ?? efforts ?? thinkingBudget ?? stopsThinking) !== undefined;
}

/** Returns true when the traits change more than members at the top of the body. */
function reachesInside(request: ChatRequest, { request: settled, traits }: Settled): boolean {
  const { settings, tools, messages, system } = request;
  const { refuses = [], toolNameLimit } = traits;
  const schema = settings.responseFormat?.type === 'json-schema';
  // An instruction stands in for JSON.
  const lacksJson = traits.jsonSchema === false && traits.jsonObject === false;
  if (lacksJson && settings.responseFormat?.type === 'json' && !refuses.includes('responseFormat'))
    return true;
  if (schema && traits.jsonSchema === false && !refuses.includes('responseFormat')) return true;
  if (refuses.includes('customTools') && tools.some(({ type }) => type === 'custom')) return true;
  if (toolNameLimit !== undefined && tools.some(({ name = '' }) => name.length > toolNameLimit)) return true;
  if (traits.midSystem === false && messages.some(({ role }) => role === 'system')) return true;
  if (traits.cacheMark !== undefined || refuses.includes('cache')) {
    if (system.some(isMarkedTurn) || messages.some(isMarkedTurn) || tools.some(isMarked)) return true;
  }
  if (traits.marksTools === false && tools.some(({ cache }) => cache !== undefined)) return true;
  if (replaysReasoning(request, settled.settings, traits)) return true;
  if (request.format !== 'chat-completions') return false;
  if (traits.parallelHistory === false && messages.some(callsSeveral)) return true;
  if (traits.alternates === true && messages.some((turn, index) => isOfOneSide(turn, messages[index - 1])))
    return true;
  if (traits.textParts === false && (system.some(listsTexts) || messages.some(listsTexts))) return true;
  return traits.systemRole === 'system' && (system.some(isOfDeveloper) || messages.some(isOfDeveloper));
}

/** Returns true for a part that is marked for the provider's cache. */
function isMarked({ cache }: { readonly cache?: unknown }): boolean {
  return cache !== undefined;
}

function isMarkedTurn(turn: Message): boolean {
  return isMarked(turn) || turn.content.some(isMarked);
}

/** Formats in which models require their reasoning to be sent back with the tool calls that it led to. */
const replaying: ReadonlySet<string> = new Set(['chat-completions', 'messages']);

/** Returns true when a placeholder must be added to the history for reasoning that the client does not have. */
function replaysReasoning(
  { format, messages }: ChatRequest,
  { reasoning }: ChatSettings,
  traits: ModelTraits,
): boolean {
  if (traits.replaysReasoning !== true || !replaying.has(format)) return false;
  if (!thinksAbout(reasoning, traits)) return false;
  return messages.some((turn) => lacksReasoning(turn, format === 'messages'));
}

/** Returns true for consecutive messages of the same side, where results of tools belong to the user's. */
function isOfOneSide({ role }: Pick<Message, 'role'>, before: Pick<Message, 'role'> | undefined): boolean {
  const side = (one: Message['role']): string => (one === 'tool' ? 'user' : one);
  return before !== undefined && side(role) === side(before.role);
}

function callsSeveral({ content }: ChatRequest['messages'][number]): boolean {
  return content.filter(({ type }) => type === 'tool-call').length > 1;
}

/** Returns true for a message whose content is a list of texts only, or that has such a result of a tool. */
function listsTexts({ content, plain }: Pick<Message, 'content' | 'plain'>): boolean {
  const isList = plain !== true && content.length > 0 && content.every(({ type }) => type === 'text');
  return isList || content.some((block) => block.type === 'tool-result' && listsTexts(block));
}

function isOfDeveloper({ extra }: ChatRequest['messages'][number]): boolean {
  return extra?.['chat-completions']?.$role === 'developer';
}

/** Returns true for a message with tool calls and without reasoning. Where `takesProofs`, a proof counts as reasoning. */
function lacksReasoning({ role, content }: Message, takesProofs: boolean): boolean {
  if (role !== 'assistant' || !content.some(({ type }) => type === 'tool-call')) return false;
  return !content.some(
    (block) =>
      block.type === 'reasoning' && (block.text !== '' || (takesProofs && block.proof !== undefined)),
  );
}

/** Returns the body with the edits applied. */
export function edited(body: JsonObject, edits: MemberEdits): JsonObject {
  const next: Record<string, JsonValue> = {};
  for (const [name, value] of Object.entries(body))
    if (!Object.hasOwn(edits, name)) next[name] = value ?? null;
  for (const [name, value] of Object.entries(edits)) if (value !== undefined) next[name] = value;
  return isObject(next) ? next : body;
}

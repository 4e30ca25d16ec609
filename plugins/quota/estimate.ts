/**
 * Computes what a call is expected to use, for rate limits, and the most that it may use, for budgets. Budgets reserve the most, so that running
 * calls together cannot exceed them.
 */
import {
  isChat,
  isObject,
  formatFor,
  type Modality,
  type Call,
  type PluginTools,
  type Target,
  type Units,
  plainMember,
} from 'sluice';
import { type Call as WholeCall, type Target as WholeTarget } from 'sluice/internal';
import { frame, needsOf, type ChatNeeds } from './needs.ts';

/** Maximum number of tokens of an image where the model's traits have none: 16,384 patches of 28 × 28 pixels. */
export const mostOfImage = 16_384;

/** Tokens of the instructions for a summary. */
const summaryInstructions = 2_000;

/** Assumed maximum context and answer, in tokens, of models without known limits. */
export const longest = { context: 1_048_576, answer: 131_072 };

/** Default output limit of the text completions format, in tokens. */
const usualCompletion = 16;

/** Minimum output limit of the responses format. */
const leastResponse = 16;

/** Maximum of all estimates, against absurd values. */
const mostTokens = 1e9;

/** Returns the expected input tokens of a call. Of a long request only the outline and the length of the rest are read. */
export function estimateInput({ estimatedInput }: Call): number {
  return within(estimatedInput);
}

/**
 * Returns the expected input tokens of a call plus its output limit. `usual`: output limit of a call without one. `requests`: number of requests in
 * which the call is sent, each of which has the input.
 */
export function estimateTokens(call: Call, usual: number, requests: number): number {
  if (call.operation === 'tool') return 0;
  const { outline: request, codec } = call;
  if (!isChat(request)) return estimateInput(call) + (codec.estimate?.(request).output ?? 0);
  const { maxOutput = usual, choices = 1 } = request.settings;
  return estimateInput(call) * requests + Math.max(0, maxOutput) * Math.max(1, choices);
}

/** Returns the maximum number of requests in which a call is sent: one for each choice where a target makes one choice per request. */
export function requestsFor(
  call: Call,
  targets: readonly Target[],
  isSingleChoice: PluginTools['isSingleChoice'],
): number {
  if (call.operation === 'tool') return 1;
  const { outline: request } = call;
  if (!isChat(request)) return 1;
  const { choices = 1 } = request.settings;
  return choices > 1 && targets.some((target) => isSingleChoice(call, target)) ? choices : 1;
}

/** Output tokens of a call. */
interface MostOutput {
  readonly most: number;
  /** A lower limit per answer with which the call can be sent instead, and the maximum with that limit. Absent where there is none. */
  readonly held?: { readonly limit: number; readonly most: number };
}

/** Upper bounds of the usage of a call. */
export interface Bound {
  /** Requests that the call is sent in at once: each reads the input, and may use services. */
  readonly requests: number;
  /** Bound for each of these requests. */
  readonly input: number;
  /** Bound for all requests together. */
  readonly output: MostOutput;
  readonly units: Units;
  /** Modalities that the input may stand for. Absent: all. */
  readonly media?: ReadonlySet<Modality>;
}

/**
 * Returns upper bounds of the usage of a call, because a token has at least one byte. `assumed`: output limit of answers without one. `callsServers`:
 * the gateway calls the MCP servers of the request.
 */
export function boundOf(
  call: WholeCall,
  targets: readonly WholeTarget[],
  assumed: number,
  isSingleChoice: PluginTools['isSingleChoice'],
  callsServers = false,
): Bound {
  const { outline: request, codec } = call;
  if (!isChat(request)) {
    const expected = codec.estimate?.(request);
    const { input = 0, output = 0, units = {} } = { ...expected, ...expected?.most };
    return { requests: 1, input: within(input), output: { most: within(output) }, units };
  }
  const body = call.bodyOutline;
  // Taken from the full body, because texts that the outline lacks count as input, and a prediction is output.
  const { prediction } = body.prediction === undefined ? {} : call.body;
  const needs = needsOf({
    request,
    body: prediction === undefined ? body : { ...body, prediction },
    codec,
    edits: call.edits,
    callsServers,
  });
  const input = mostInput(needs, call.omittedBytes, targets);
  return {
    requests: requestsFor(call, targets, isSingleChoice),
    input: within(summarises(call) ? 2 * input + summaryInstructions : input),
    output: mostOutput(call, needs, targets, assumed),
    units: searchContextOf(call),
    media: needs.media,
  };
}

/** Perplexity charges a call by the size of its search context, which the client chooses. */
function searchContextOf({ body: { web_search_options: options } }: Call): Units {
  const size = isObject(options) ? options.search_context_size : undefined;
  return typeof size === 'string' && size.length < 20 ? { callsAt: { [size]: 1 } } : {};
}

/** Returns the largest value of the targets, none of which is negative; 0 without any. */
function greatest(targets: readonly WholeTarget[], valueOf: (target: WholeTarget) => number): number {
  let largest = 0;
  for (const target of targets) largest = Math.max(largest, valueOf(target));
  return largest;
}

function mostInput(
  { input, images, unseen }: ChatNeeds,
  leftOut: number,
  targets: readonly WholeTarget[],
): number {
  const image = images === 0 ? 0 : greatest(targets, ({ traits }) => traits.imageTokens ?? mostOfImage);
  const context = unseen ? greatest(targets, ({ traits }) => traits.inputLimit ?? longest.context) : 0;
  const systemPromptBytes = greatest(targets, ({ channel }) =>
    channel.systemPrompt === undefined ? 0 : Buffer.byteLength(channel.systemPrompt.text),
  );
  return input + leftOut + images * image + context + (systemPromptBytes > 0 ? systemPromptBytes + frame : 0);
}

function mostOutput(
  call: Call,
  needs: ChatNeeds,
  targets: readonly WholeTarget[],
  assumed: number,
): MostOutput {
  const { answers, thinking, predicted } = needs;
  const keepsLimit = targets.every(({ traits }) => takesLimit(traits));
  const requestedLimit = keepsLimit ? needs.limit : undefined;
  const known = greatest(targets, ({ traits }) => traits.outputLimit ?? 0);
  const areAllKnown = targets.length > 0 && targets.every(({ traits }) => traits.outputLimit !== undefined);
  const model = areAllKnown ? known : undefined;
  const open = model ?? Math.max(longest.answer, known) + thinking;
  const least = Math.max(
    targets.some((target) => isForeignResponses(target, call)) ? leastResponse : 1,
    greatest(targets, ({ traits }) => traits.ranges?.maxOutput?.min ?? 1),
  );
  // A summary has no limit of its own.
  const besides = predicted + (summarises(call) ? open : 0);
  const all = (limit: number): number => within(Math.ceil(Math.max(limit, least) * answers) + besides);
  const usual = call.codec.format === 'text-completions' ? usualCompletion : assumed;
  const limit = Math.min(requestedLimit ?? usual, model ?? Number.POSITIVE_INFINITY);
  const most = all(requestedLimit ?? open);
  const heldMost = all(limit);
  return keepsLimit && heldMost < most && call.operation === 'chat'
    ? { most, held: { limit, most: heldMost } }
    : { most };
}

/** Names of the output limit in requests of all formats. */
const limitNames: ReadonlySet<string> = new Set(
  ['max_tokens', 'max_completion_tokens', 'max_output_tokens'].map(plainMember),
);

/** False for a model that is never sent an output limit, so that its longest answer counts. */
function takesLimit({ refuses, refusedMembers = [] }: Target['traits']): boolean {
  if (refuses?.includes('maxOutput') === true) return false;
  return !refusedMembers.some((member) => {
    const { path, as } = typeof member === 'string' ? { path: member, as: undefined } : member;
    return as === undefined && limitNames.has(plainMember(path.split('.').at(-1) ?? ''));
  });
}

/** True where the gateway may request a summary of the conversation before the response. */
function summarises({ codec, bodyOutline, operation }: Call): boolean {
  const { context_management: management = null } = bodyOutline;
  return codec.format === 'responses' && operation === 'chat' && management !== null;
}

/** True for a target that gets requests in the responses format for a client of another format. */
function isForeignResponses(target: Target, call: Call): boolean {
  return call.codec.format !== 'responses' && formatFor(call, target) === 'responses';
}

/** Returns the expected usage of a call other than tokens. */
export function expectedUnits(call: Call): Units {
  const { outline: request } = call;
  return isChat(request) ? {} : (call.codec.estimate?.(request).units ?? {});
}

function within(tokens: number): number {
  return Math.min(mostTokens, Math.max(0, tokens));
}

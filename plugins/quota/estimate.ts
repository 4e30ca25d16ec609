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

/**
 * What calls are expected to use, and the most that they may. Budgets are measured by the most alone, far from their end and near it: so the
 * sum of what is spent and reserved is never less than what running calls can come to, however many there are. It costs no more to find.
 */

/** The most tokens of an image where its model's traits do not say it: 16,384 patches of 28 × 28. */
export const mostOfImage = 16_384;

/** Instructions by which a model is asked for a summary. */
const summaryInstructions = 2_000;

/** The longest context, and the longest answer, of models whose limits nobody states. */
export const longest = { context: 1_048_576, answer: 131_072 };

/** Output tokens of a text completion without a limit, as its format says. */
const usualCompletion = 16;

/** The least output limit that a responses channel is sent. */
const leastResponse = 16;

/** More than any model takes or gives: keeps nonsense out of sums of money. */
const mostTokens = 1e9;

/** The input tokens that a call is expected to have. Of a long request its outline is read, and how long the rest is. */
export function estimateInput({ estimatedInput }: Call): number {
  return within(estimatedInput);
}

/**
 * The tokens that a call is expected to have, its output at the most that it allows. `usual` is the limit of answers that have none. Each of the
 * `requests` in which it is sent reads the input.
 */
export function estimateTokens(call: Call, usual: number, requests: number): number {
  if (call.operation === 'tool') return 0;
  const { outline: request, codec } = call;
  if (!isChat(request)) return estimateInput(call) + (codec.estimate?.(request).output ?? 0);
  const { maxOutput = usual, choices = 1 } = request.settings;
  return estimateInput(call) * requests + Math.max(0, maxOutput) * Math.max(1, choices);
}

/** The most requests in which a call is sent: one for each answer where a target makes one answer for each request. */
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
  /** A lower limit for each answer that the call can be sent with, and what it comes to then; absent where there is none to name. */
  readonly held?: { readonly limit: number; readonly most: number };
}

/** The most that a call may come to. */
export interface Bound {
  /** Requests that the call is sent in at once: each reads the input, and may use services. */
  readonly requests: number;
  /** Of each of these requests. */
  readonly input: number;
  /** Of all of them. */
  readonly output: MostOutput;
  readonly units: Units;
  /** What the input may stand for. Absent: anything. */
  readonly media?: ReadonlySet<Modality>;
}

/**
 * The most that a call may come to: a token is at least a byte. `assumed` is the limit of answers that nobody limits. `callsServers`: the gateway
 * calls the MCP servers of the request.
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
  // What is left out of it would count as input: a prediction is output.
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

/** The largest of the values, none of which is negative; 0 without any. */
const greatest = (values: readonly number[]): number =>
  values.reduce((largest, value) => Math.max(largest, value), 0);

function mostInput(
  { input, images, unseen }: ChatNeeds,
  leftOut: number,
  targets: readonly WholeTarget[],
): number {
  const image = greatest(targets.map(({ traits }) => traits.imageTokens ?? mostOfImage));
  const context = greatest(targets.map(({ traits }) => traits.inputLimit ?? longest.context));
  const told = greatest(targets.map(({ channel }) => Buffer.byteLength(channel.systemPrompt?.text ?? '')));
  return input + leftOut + images * image + (unseen ? context : 0) + (told > 0 ? told + frame : 0);
}

function mostOutput(call: Call, needs: ChatNeeds, targets: readonly Target[], assumed: number): MostOutput {
  const { answers, thinking, predicted } = needs;
  const keepsLimit = targets.every(({ traits }) => takesLimit(traits));
  const asked = keepsLimit ? needs.limit : undefined;
  const limits = targets.map(({ traits }) => traits.outputLimit);
  const known = limits.filter((limit) => limit !== undefined);
  const model = known.length === limits.length && known.length > 0 ? greatest(known) : undefined;
  const open = model ?? greatest([longest.answer, ...known]) + thinking;
  const least = greatest([
    targets.some((target) => isForeignResponses(target, call)) ? leastResponse : 1,
    ...targets.map(({ traits }) => traits.ranges?.maxOutput?.min ?? 1),
  ]);
  // A summary has no limit of its own.
  const besides = predicted + (summarises(call) ? open : 0);
  const all = (limit: number): number => within(Math.ceil(Math.max(limit, least) * answers) + besides);
  const usual = call.codec.format === 'text-completions' ? usualCompletion : assumed;
  const limit = Math.min(asked ?? usual, model ?? Number.POSITIVE_INFINITY);
  const most = all(asked ?? open);
  const heldMost = all(limit);
  return keepsLimit && heldMost < most && call.operation === 'chat'
    ? { most, held: { limit, most: heldMost } }
    : { most };
}

/** Names of the output limit in requests of all formats. */
const limitNames: ReadonlySet<string> = new Set(
  ['max_tokens', 'max_completion_tokens', 'max_output_tokens'].map(plainMember),
);

/** False for a model that is sent no output limit, whatever the client says: its longest answer counts. */
function takesLimit({ refuses, refusedMembers = [] }: Target['traits']): boolean {
  if (refuses?.includes('maxOutput') === true) return false;
  return !refusedMembers.some((member) => {
    const { path, as } = typeof member === 'string' ? { path: member, as: undefined } : member;
    return as === undefined && limitNames.has(plainMember(path.split('.').at(-1) ?? ''));
  });
}

/** True where the gateway may ask for a summary of the conversation before the answer. */
function summarises({ codec, bodyOutline, operation }: Call): boolean {
  const { context_management: management = null } = bodyOutline;
  return codec.format === 'responses' && operation === 'chat' && management !== null;
}

/** True for a target that is asked in the words of the responses format for a client of another one. */
function isForeignResponses(target: Target, call: Call): boolean {
  return call.codec.format !== 'responses' && formatFor(call, target) === 'responses';
}

/** What a call is expected to use besides tokens. */
export function expectedUnits(call: Call): Units {
  const { outline: request } = call;
  return isChat(request) ? {} : (call.codec.estimate?.(request).units ?? {});
}

function within(tokens: number): number {
  return Math.min(mostTokens, Math.max(0, tokens));
}

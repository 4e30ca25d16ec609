import { isChat } from '../model/request.ts';
import type { Block, ChatRequest } from '../model/chat.ts';
import type { Call } from '../sdk/call.ts';
import type { Ability, Medium } from '../sdk/channel.ts';
import type { Candidate } from './catalog.ts';
import { thinksAtAll } from '../models/profile.ts';

/** Penalty on the rank of candidates that do not support a call. Smaller than the difference of two ranks. */
const behind = 1e-6;

/** Bytes for each token in the estimate of a length. More than any language needs, so that the estimate is never too high. */
const bytesOfToken = 6;

/** Capabilities that a call needs. */
interface Needs {
  readonly media: ReadonlySet<Medium>;
  readonly abilities: readonly Ability[];
  /** Lower bound of its tokens; 0 when it has media, because their bytes are not a measure of tokens. */
  readonly input: number;
}

/**
 * Returns the candidates, within each rank those last that are known not to support the call. Removes none, because the known traits may be
 * outdated. Returns the same array when the order does not change.
 */
export function preferCapable(candidates: readonly Candidate[], call: Call): readonly Candidate[] {
  if (call.operation !== 'chat' || candidates.length < 2) return candidates;
  let orders = ordersOf.get(candidates);
  if (orders === undefined) ordersOf.set(candidates, (orders = new Orders(candidates)));
  if (!orders.areSeveral) return candidates;
  const request = call.outline;
  return isChat(request) ? orders.of(needsOf(request, call)) : candidates;
}

/** Orders by list of candidates. A cache, because lists are reused and may be long. */
const ordersOf = new WeakMap<readonly Candidate[], Orders>();

/** Maximum number of cached orders of one list. Real requests need few different combinations of capabilities. */
const mostOrders = 32;

/** Cached orders of a list of candidates, by the needs of calls. */
class Orders {
  readonly #candidates: readonly Candidate[];
  /** True when some candidates share a rank. Otherwise all requests have the same order. */
  readonly areSeveral: boolean;
  /** Distinct context lengths in tokens. */
  readonly #inputLimits: readonly number[];
  /** Orders by the names of the needed capabilities and the number of context lengths that are too short. */
  readonly #byNeeds = new Map<string, readonly Candidate[]>();

  constructor(candidates: readonly Candidate[]) {
    this.#candidates = candidates;
    this.areSeveral = sharesRanks(candidates);
    const limits = candidates.flatMap(({ targets: [target] }) => target?.traits.inputLimit ?? []);
    this.#inputLimits = [...new Set(limits)];
  }

  of(needs: Needs): readonly Candidate[] {
    const tooShort = this.#inputLimits.filter((limit) => needs.input > limit).length;
    const names = `${[...needs.media].toSorted().join()} ${needs.abilities.join()} ${tooShort}`;
    let found = this.#byNeeds.get(names);
    if (found === undefined) {
      found = ordered(this.#candidates, needs);
      // Limits the cache, because clients determine the keys and lists may be long.
      if (this.#byNeeds.size >= mostOrders) this.#byNeeds.clear();
      this.#byNeeds.set(names, found);
    }
    return found;
  }
}

function ordered(candidates: readonly Candidate[], needs: Needs): readonly Candidate[] {
  const fits = candidates.map((candidate) => isFit(candidate, needs));
  if (!fits.includes(false) || !fits.includes(true)) return candidates;
  return candidates
    .map((candidate, index) =>
      fits[index] === true ? candidate : { ...candidate, rank: candidate.rank - behind },
    )
    .toSorted((one, other) => other.rank - one.rank);
}

function sharesRanks(candidates: readonly Candidate[]): boolean {
  return candidates.some(({ rank }, index) => index > 0 && candidates[index - 1]?.rank === rank);
}

function needsOf({ system, messages, tools, settings }: ChatRequest, { wire }: Call): Needs {
  const media = new Set<Medium>();
  for (const { content } of [...system, ...messages]) addMedia(content, media);
  const { reasoning, responseFormat } = settings;
  const abilities: Ability[] = [];
  if (tools.some(({ type }) => type === 'function' || type === 'custom')) abilities.push('tools');
  if (tools.some(({ type }) => type === 'web-search')) abilities.push('web-search');
  if (responseFormat?.type === 'json-schema') abilities.push('structured-output');
  if (reasoning !== undefined && reasoning.mode !== 'off' && (reasoning.effort ?? 'low') !== 'none')
    abilities.push('reasoning');
  return { media, abilities, input: media.size > 0 ? 0 : wire.bytes.length / bytesOfToken };
}

function addMedia(blocks: readonly Block[], media: Set<Medium>): void {
  for (const block of blocks) {
    if (block.type === 'tool-result') addMedia(block.content, media);
    else if (block.type === 'file') media.add('document');
    else if (block.type === 'image' || block.type === 'audio' || block.type === 'video')
      media.add(block.type);
  }
}

/** Returns false when the traits of the kind, the config or the catalogue say that the model does not support the call. An unknown model counts as suitable. */
function isFit({ channel, targets: [target] }: Candidate, { media, abilities, input }: Needs): boolean {
  if (target === undefined) return true;
  const { traits, model } = target;
  if (input > (traits.inputLimit ?? Infinity)) return false;
  const known = channel.known?.(model);
  return (
    abilities.every((ability) =>
      ability === 'reasoning' && traits.reasoning !== undefined
        ? thinksAtAll(traits)
        : known?.cannot?.includes(ability) !== true,
    ) &&
    (known === undefined || [...media].every((medium) => known.takes?.includes(medium) === true))
  );
}

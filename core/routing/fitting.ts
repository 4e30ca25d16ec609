import { isChat } from '../model/request.ts';
import type { Block, ChatRequest } from '../model/chat.ts';
import type { Call } from '../sdk/call.ts';
import type { Ability, Medium } from '../sdk/channel.ts';
import type { Candidate } from './catalog.ts';
import { thinksAtAll } from '../models/profile.ts';

/** How far the candidates that do not fit stand behind those of the same rank: less than two ranks can differ by. */
const behind = 1e-6;

/** Bytes of a request that are taken for one token: more than any language needs, so that no context is called too short that is not. */
const bytesOfToken = 6;

/** What a call asks of a model beyond words. */
interface Needs {
  readonly media: ReadonlySet<Medium>;
  readonly abilities: readonly Ability[];
  /** Tokens that it has at least; 0 where media make its size say nothing. */
  readonly input: number;
}

/**
 * The candidates, of each rank those first of which nothing is known that speaks against them. All stay: what is known may be out of
 * date, and then it has cost no more than the order. The same array where nothing is to be preferred.
 */
export function fittingFirst(candidates: readonly Candidate[], call: Call): readonly Candidate[] {
  if (call.operation !== 'chat' || candidates.length < 2) return candidates;
  let orders = ordersOf.get(candidates);
  if (orders === undefined) ordersOf.set(candidates, (orders = new Orders(candidates)));
  if (!orders.areSeveral) return candidates;
  const request = call.outline;
  return isChat(request) ? orders.of(needsOf(request, call)) : candidates;
}

/** What was found for a list of candidates. The catalog gives the same one again, which may have thousands. */
const ordersOf = new WeakMap<readonly Candidate[], Orders>();

/** Orders of one list that are remembered: real requests need few different things. */
const mostOrders = 32;

/** The orders of a list of candidates, by what is asked of them. */
class Orders {
  readonly #candidates: readonly Candidate[];
  /** True when some share a rank: otherwise there is one order for all requests. */
  readonly areSeveral: boolean;
  /** The lengths of their contexts in tokens, each once. */
  readonly #inputLimits: readonly number[];
  /** By the names of what a request needs, and the number of lengths that are too short for it. */
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
      // Callers choose what they need, and a list may be long.
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

/** False where the kind's traits, the config or the list of known models speak against the model. A model that nobody knows fits. */
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

import { isChat, type JsonObject, type ModelTraits, type Units, sumUnits } from 'sluice';
import type { Codec } from 'sluice/channel-kit';
import { mostFor } from 'sluice/internal';
import type { OwnRow, Prices } from './core-types.ts';
import { longest, mostOfImage } from '../quota/estimate.ts';
import { needsOf } from '../quota/needs.ts';
import { servicesOf } from '../quota/services.ts';

/** What requests to one model may use together, as far as the model has no say in it. All are tokens or counts. */
export interface Needs {
  readonly calls: number;
  readonly input: number;
  /** Images, of which each model makes so many tokens as it likes. */
  readonly images: number;
  /** Requests of which something tells nobody how long it is: each may be as long as the context. */
  readonly unseen: number;
  readonly output: number;
  /** Answers that nobody limits, and the thinking that may come on top of them. */
  readonly open: number;
  readonly thinking: number;
  /** The input of the longest of them. */
  readonly longest: number;
  readonly units: Units;
}

/** The most that requests may come to, before the share of a batch. `microDollars` is undefined for a model without a price. */
export interface Most {
  readonly tokens: number;
  readonly microDollars: number | undefined;
}

/** More than any batch uses: keeps nonsense out of sums of money. */
const mostTokens = 1e12;

const none: Needs = {
  calls: 0,
  input: 0,
  images: 0,
  unseen: 0,
  output: 0,
  open: 0,
  thinking: 0,
  longest: 0,
  units: {},
};

/** Adds up what requests need, by the model that they go to. */
export class NeedsByModel {
  readonly #sums = new Map<string, Needs>();

  /** Goes on from what was added up before. */
  constructor(before: Readonly<Record<string, Needs>> = {}) {
    for (const [model, needs] of Object.entries(before)) this.#sums.set(model, needs);
  }

  /** Adds a request. Throws 400 where its format cannot read it. */
  add(model: string, codec: Codec, body: JsonObject): void {
    this.#sums.set(model, sumOf(this.#sums.get(model) ?? none, requestNeeds(model, codec, body)));
  }

  get all(): Readonly<Record<string, Needs>> {
    return Object.fromEntries(this.#sums);
  }
}

/** Uses of a service that are reserved for a request of a batch which states no limit of them. */
const assumedUses = 10;

function requestNeeds(model: string, codec: Codec, body: JsonObject): Needs {
  // Lines of some APIs name none: they are all for the model of their batch.
  const request = codec.decodeRequest(body, { model: model === '' ? 'model' : model });
  if (!isChat(request)) {
    const expected = codec.estimate?.(request);
    const { input = 0, output = 0, units = {} } = { ...expected, ...expected?.most };
    return { ...none, calls: 1, input, output, longest: input, units };
  }
  const { input, images, unseen, answers, limit, thinking, predicted } = needsOf({
    request,
    body,
    codec,
    edits: {},
  });
  const services = servicesOf(body, assumedUses, { format: codec.format });
  return {
    calls: 1,
    input,
    images,
    unseen: unseen ? 1 : 0,
    output: Math.ceil(limit === undefined ? 0 : Math.max(1, limit) * answers) + predicted,
    open: limit === undefined ? answers : 0,
    thinking: limit === undefined ? thinking * answers : 0,
    longest: input + images * mostOfImage + (unseen ? longest.context : 0),
    units: services === undefined ? {} : { services },
  };
}

function sumOf(one: Needs, other: Needs): Needs {
  const sum = (name: Exclude<keyof Needs, 'units' | 'longest'>): number =>
    Math.min(mostTokens, one[name] + other[name]);
  return {
    calls: sum('calls'),
    input: sum('input'),
    images: sum('images'),
    unseen: sum('unseen'),
    output: sum('output'),
    open: sum('open'),
    thinking: sum('thinking'),
    longest: Math.max(one.longest, other.longest),
    units: sumUnits(one.units, other.units) ?? {},
  };
}

/** The most input tokens of one such request at a model with these traits. */
export function mostInput(
  { input, images, unseen }: Needs,
  { imageTokens = mostOfImage, inputLimit = longest.context }: ModelTraits,
): number {
  return Math.min(inputLimit, within(input + images * imageTokens + unseen * inputLimit));
}

/** The most that such requests may come to at a model with these traits. `row`: prices of the owners of the key. */
export function mostOf(
  model: string,
  needs: Needs,
  { imageTokens = mostOfImage, inputLimit = longest.context, outputLimit }: ModelTraits,
  prices: Prices,
  row?: OwnRow,
): Most {
  const input = within(needs.input + needs.images * imageTokens + needs.unseen * inputLimit);
  const answers =
    outputLimit === undefined ? needs.open * longest.answer + needs.thinking : needs.open * outputLimit;
  const output = within(needs.output + answers);
  const { calls, units } = needs;
  const bounds = { calls, longest: Math.min(input, needs.longest) };
  return {
    tokens: input + output,
    microDollars: mostFor({ factor: 1, row }, prices, model, [input, output, units], bounds),
  };
}

function within(tokens: number): number {
  return Math.min(mostTokens, Math.max(0, Math.ceil(tokens)));
}

/** Upper bounds of what the requests of a batch may use, added up by model, and of what that costs. */
import { isChat, type JsonObject, type ModelTraits, type Units, sumUnits } from 'sluice';
import type { Codec } from 'sluice/channel-kit';
import { mostFor } from 'sluice/internal';
import type { OwnRow, Prices } from './core-types.ts';
import { longest, mostOfImage } from '../quota/estimate.ts';
import { needsOf } from '../quota/needs.ts';
import { servicesOf } from '../quota/services.ts';

/** Upper bounds of what requests to one model may use together, before the limits of the model are applied. All are tokens or counts. */
export interface Needs {
  readonly calls: number;
  readonly input: number;
  /** Number of images, whose tokens depend on the model. */
  readonly images: number;
  /** Number of requests with a part of unknown length, each of which may fill the context. */
  readonly unseen: number;
  readonly output: number;
  /** Number of answers without an output limit, and tokens of thinking that may be added to them. */
  readonly open: number;
  readonly thinking: number;
  /** Input tokens of the longest request. */
  readonly longest: number;
  readonly units: Units;
}

/** Upper bounds of tokens and cost of requests, without the discount of a batch. `microDollars` is undefined for a model without a price. */
export interface Most {
  readonly tokens: number;
  readonly microDollars: number | undefined;
}

/** Maximum of all sums of tokens, against absurd values. */
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

/** Adds up the upper bounds of requests by model. */
export class NeedsByModel {
  readonly #sums = new Map<string, Needs>();

  /** `before`: sums to continue from. */
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

/** Returns an upper bound of the input tokens of one request at a model with these traits. */
export function mostInput(
  { input, images, unseen }: Needs,
  { imageTokens = mostOfImage, inputLimit = longest.context }: ModelTraits,
): number {
  return Math.min(inputLimit, within(input + images * imageTokens + unseen * inputLimit));
}

/** Returns upper bounds of tokens and cost of requests at a model with these traits. `row`: prices of the owners of the key. */
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

/** Adds up the usage of the responses of a batch by model, and makes the settlements that charge it. */
import { sumUsage, type JsonObject, type PriceRule, type TokenCounts, type Usage } from 'sluice';
import type { Codec } from 'sluice/channel-kit';
import { chargedMicroDollars, priceFor, type InternalTools } from 'sluice/internal';
import type { Channel, ProviderObject, Settlement } from './core-types.ts';
import type { BatchAnswer, CodecName } from './batch-sorts.ts';

/** Maximum number of tokens of a request that is charged, against wrong figures of providers. */
const mostTokens = 1e9;

const none = [0, 0] as const;

/** Cost of the requests to one model before any discount; `services`: the part that services cost. */
interface Cost {
  readonly microDollars?: number | undefined;
  readonly services?: number;
}

interface Sum {
  usage: Usage;
  /** Undefined where the model has no price. */
  microDollars: number | undefined;
  /** Part of `microDollars` that services cost. */
  services: number;
  /** Charge by the key owners' own price row, before the discount of the batch: for tokens, and for services. */
  own: readonly [tokens: number, services: number];
  price: JsonObject | undefined;
  upstreamModel: string;
}

/** Data and services for the bill of a batch. */
export interface Billing {
  readonly object: ProviderObject;
  readonly channel: Channel;
  readonly codec: CodecName;
  /** Price of requests in a batch, as a share of their usual price. */
  readonly share: number;
  /** The price rule of the owners of the key. */
  readonly pricing: PriceRule | undefined;
  readonly tools: Pick<InternalTools, 'format' | 'prices'>;
}

/** Usage and cost of the responses of a batch, by model. */
export class Bill {
  readonly #billing: Billing;
  readonly #sums = new Map<string, Sum>();
  readonly #models: readonly string[];
  /** Number of responses without usage. */
  withoutUsage = 0;

  constructor(billing: Billing) {
    this.#billing = billing;
    const { models } = billing.object.known;
    this.#models = Array.isArray(models) ? (models as readonly string[]) : [];
  }

  add(answer: BatchAnswer): void {
    const usage = this.#usageOf(answer);
    if (usage === undefined) {
      this.withoutUsage += 1;
      return;
    }
    const { channel, tools } = this.#billing;
    const model = this.#modelOf(answer.model) ?? this.#dearest(usage);
    const upstreamModel = channel.upstreamModel(model) ?? answer.model ?? model;
    const cost = tools.prices.cost(model, usage, { channel: channel.id, model: upstreamModel });
    const { row } = priceFor(this.#billing.pricing, model);
    const own = row?.charge({ usage, price: cost?.price }) ?? none;
    const sum = this.#sums.get(model);
    if (sum === undefined) {
      const { microDollars, price, services = 0 } = cost ?? {};
      this.#sums.set(model, { usage, microDollars, price, services, own, upstreamModel });
      return;
    }
    sum.usage = sumUsage(sum.usage, usage);
    sum.own = [sum.own[0] + own[0], sum.own[1] + own[1]];
    if (cost === undefined) return;
    sum.microDollars = (sum.microDollars ?? 0) + cost.microDollars;
    sum.services += cost.services ?? 0;
  }

  /** Returns one settlement for each model. */
  settlements(now: number): readonly Settlement[] {
    const { object, share } = this.#billing;
    const { owner, kind, charge } = object;
    const format = kind.slice(0, kind.indexOf('/'));
    return [...this.#sums].map(([model, sum], index) => {
      const { usage, price, upstreamModel, own } = sum;
      const { input, output, cacheRead, cacheWrite, reasoning, units } = usage;
      const cost = this.#costOf(sum);
      const charged = this.#chargeOf(model, sum, own);
      return {
        ...(owner === '' ? {} : { keyId: owner }),
        ...(charge?.reservation === undefined ? {} : { reservation: charge.reservation }),
        charged: { microDollars: charged, tokens: input + output },
        isPriced: true,
        record: {
          id: `${charge?.id ?? object.id}${index === 0 ? '' : `_${index + 1}`}`,
          at: now,
          ...(owner === '' ? {} : { keyId: owner }),
          ip: '',
          operation: 'batch',
          format,
          upstreamFormat: format,
          model,
          upstreamModel,
          channel: object.channel,
          stream: false,
          status: 200,
          ended: 'complete',
          reason: `The answers of batch ${object.id}.`,
          input,
          output,
          cacheRead,
          cacheWrite,
          reasoning,
          ...(units === undefined ? {} : { units }),
          ...(cost === undefined ? {} : { microDollars: cost }),
          ...(charged === (cost ?? 0) ? {} : { chargedMicroDollars: charged }),
          ...(price === undefined ? {} : { price: { ...price, batchShare: share } }),
          ms: Math.max(0, now - object.createdAt),
        },
      };
    });
  }

  #usageOf({ reply }: BatchAnswer): Usage | undefined {
    const [format, operation] = this.#billing.codec;
    const codec = this.#billing.tools.format(format)?.codecs[operation];
    const usage = codec?.usageTap().read(JSON.stringify(reply)) ?? this.#decoded(codec, reply);
    if (usage === undefined) return undefined;
    const { units, otherModels, byModality } = usage;
    return {
      ...counted(usage),
      ...(units === undefined ? {} : { units }),
      ...(byModality === undefined ? {} : { byModality }),
      ...(otherModels === undefined
        ? {}
        : { otherModels: otherModels.map((one) => ({ ...one, usage: counted(one.usage) })) }),
    };
  }

  /** Reads the usage of a response that is no chat, which codecs return with its result. */
  #decoded(codec: Codec | undefined, reply: JsonObject): Usage | undefined {
    try {
      const usage = codec?.decodeWhole(reply, {}).findLast((event) => event.type === 'usage');
      return usage?.type === 'usage' ? usage.usage : undefined;
    } catch {
      return undefined;
    }
  }

  /** Returns the model by which a response is charged that does not name its model: the most expensive one of the batch. */
  #dearest(usage: Usage): string {
    const charges = this.#models.map((model) => {
      const cost = this.#billing.tools.prices.cost(model, usage);
      const { row } = priceFor(this.#billing.pricing, model);
      const own = row?.charge({ usage, price: cost?.price }) ?? none;
      const isFree = row === undefined && cost === undefined;
      return [model, isFree ? -1 : this.#chargeOf(model, cost ?? {}, own)] as const;
    });
    return charges.toSorted(([, one], [, other]) => other - one)[0]?.[0] ?? '';
  }

  /** Returns the cost of requests to one model in a batch. Services have no discount. */
  #costOf({ microDollars, services = 0 }: Cost): number | undefined {
    if (microDollars === undefined) return undefined;
    return this.#shareOf(microDollars - services) + services;
  }

  /** Returns what owners are charged for them. `own`: by their row of prices. */
  #chargeOf(model: string, cost: Cost, [tokens, services]: Sum['own']): number {
    const { row, factor } = priceFor(this.#billing.pricing, model);
    return row === undefined
      ? chargedMicroDollars(this.#costOf(cost) ?? 0, factor)
      : this.#shareOf(tokens) + services;
  }

  #shareOf(microDollars: number): number {
    // Subtracted, so that a floating-point error does not round up.
    return Math.ceil(microDollars * this.#billing.share - 1e-6);
  }

  /**
   * Returns the public name of the model that a response names, which providers may spell with a date. Undefined for a model that the batch does
   * not have.
   */
  #modelOf(reported: string | undefined): string | undefined {
    if (this.#models.length === 1) return this.#models[0];
    if (reported === undefined || this.#models.length === 0) return reported;
    const { channel } = this.#billing;
    const names = this.#models.map((model) => [model, channel.upstreamModel(model) ?? model] as const);
    const fitting = names
      .filter(([, there]) => reported === there || reported.startsWith(`${there}-`))
      .toSorted(([, one], [, other]) => other.length - one.length);
    return fitting[0]?.[0];
  }
}

function counted({
  input,
  output,
  cacheRead,
  cacheWrite,
  reasoning,
  cacheWriteLong,
}: TokenCounts): TokenCounts {
  return {
    input: count(input),
    output: count(output),
    cacheRead: count(cacheRead),
    cacheWrite: count(cacheWrite),
    reasoning: count(reasoning),
    ...(cacheWriteLong === undefined ? {} : { cacheWriteLong: count(cacheWriteLong) }),
  };
}

function count(tokens: number): number {
  return tokens > 0 ? Math.min(mostTokens, Math.ceil(tokens)) : 0;
}

/** Measures the usage of a response for budgets, also where the provider does not report it or the response breaks off. */
import {
  estimateTokens,
  isChat,
  sumUsage,
  wordBytes,
  type GatewayEvent,
  type TokenCounts,
  type Usage,
  type JsonObject,
  type AttemptEvent,
} from 'sluice';
import { parseSse } from 'sluice/channel-kit';
import { ReplyMeter, type Used } from './reply-meter.ts';
import { accountOf, type Call, type CallReservation } from 'sluice/internal';
import type { Ending } from './core-types.ts';
import { estimateInput, expectedUnits, type Bound } from './estimate.ts';
import { sentTier, tierMembers, ServiceMeter, type Services } from './services.ts';

/** Bytes of a passing stream that are sampled, to find the share of text in it. */
const sampleBytes = 16 * 1024;

/** Assumed share of text in a passing stream whose frames cannot be parsed. */
const fallbackShare = 0.1;

/** Maximum number of tokens that are charged, against wrong figures of providers. */
const mostTokens = 1e9;

/** Returns the upper bounds of a call. */
export type Bounding = (call: Call) => Bound;

/** Meter of the response to a call of a model. */
export class Meter extends ReplyMeter {
  readonly #bound: Bounding;
  /** Number of providers that the call had reached before this request. */
  readonly #before: number;
  #model: string;
  #answered: AttemptEvent | undefined;
  /** Number of parallel attempts (hedges) that were given up. */
  #hedged = 0;
  #content = false;
  #usage: Usage | undefined;
  /** Bytes of text, of passing frames and of passing whole responses since usage was last reported. */
  #words = 0;
  #passed = 0;
  #wholes = 0;
  #sample: Buffer[] | undefined;
  #sampled = 0;
  readonly #services: ServiceMeter | undefined;
  /** Members of a long request that say its service tier. */
  readonly #body: JsonObject | undefined;

  /** `reservation`: the reservation for the request. `services`: those that were reserved. */
  constructor(call: Call, bound: Bounding, reservation?: CallReservation, services?: Services) {
    super(call, reservation);
    this.#services = services && new ServiceMeter(services, call.codec);
    // Read here, because a long request is released when it is sent and would be parsed again.
    this.#body = call.wire.outline === undefined ? undefined : tierMembers(call.bodyOutline);
    this.#bound = bound;
    this.#before = accountOf(call).attempts.readers;
    this.#model = call.model;
  }

  /** The model in force when the call was sent. */
  get model(): string {
    return this.#model;
  }

  /** The attempt that answered. */
  get answered(): AttemptEvent | undefined {
    return this.#answered;
  }

  event(event: GatewayEvent): void {
    this.#services?.event(event);
    switch (event.type) {
      case 'request':
        this.#model = event.model;
        break;
      case 'attempt':
        if (event.failure === undefined) this.#answered = event;
        else if (event.failure === 'hedged') this.#hedged += 1;
        break;
      case 'usage':
        this.#usage = sound(event.usage);
        this.#words = 0;
        this.#passed = 0;
        this.#wholes = 0;
        break;
      case 'frames':
        this.#content = true;
        this.#passed += event.bytes.length;
        if (this.#sampled < sampleBytes) {
          this.#sampled += event.bytes.length;
          (this.#sample ??= []).push(event.bytes);
        }
        break;
      case 'bytes':
        this.#content = true;
        this.#wholes += event.bytes.length;
        break;
      case 'text-delta':
      case 'refusal-delta':
      case 'reasoning-delta':
      case 'tool-start':
      case 'tool-delta':
      case 'media-delta':
        this.#content = true;
        this.#words += wordBytes(event);
        break;
    }
  }

  /**
   * Returns the usage to charge: that of the provider that responded, reported or estimated from the response, and the estimated input of each hedge
   * that was given up, because its provider has read the input and reports no usage.
   */
  used(how: Ending): Used {
    const used = this.#withServices(
      this.#withTier(this.#answered ? this.#answer(how) : how === 'left' ? this.#inputUsage() : undefined),
      how,
    );
    if (used === undefined) return { usage: undefined, parts: [] };
    if (this.#hedged === 0) return { usage: used, parts: [used] };
    const { requests } = this.#bound(this.call);
    const { serviceTier } = used;
    const hedged: Usage = {
      ...this.#read(this.#hedged * requests),
      ...(serviceTier === undefined ? {} : { serviceTier }),
    };
    const sum = sumUsage(used, hedged);
    const calls = (used.units?.calls ?? 1) + this.#hedged * requests;
    return { usage: { ...sum, units: { ...sum.units, calls } }, parts: [used, hedged] };
  }

  /** Adds the service tier that was asked for where the provider does not tell which one it used. */
  #withTier(used: Usage | undefined): Usage | undefined {
    if (used === undefined || used.serviceTier !== undefined) return used;
    const serviceTier = sentTier(
      this.#body ?? this.call.bodyOutline,
      this.call.codec.format,
      this.#answered?.format,
    );
    return serviceTier === undefined ? used : { ...used, serviceTier };
  }

  #withServices(used: Usage | undefined, how: Ending): Usage | undefined {
    if (used === undefined || this.#services === undefined) return used;
    const isComplete = how === 'complete' && this.#usage !== undefined;
    const services = this.#services.used(used.units?.services, isComplete, this.#answered?.format);
    return Object.keys(services).length === 0 ? used : { ...used, units: { ...used.units, services } };
  }

  /**
   * Returns the usage of the response. Undefined where the provider failed before any content. An estimate of the content since the last reported
   * usage is added, because a stream that is cut does not report the rest. Estimates are limited by the bounds of the call.
   */
  #answer(how: Ending): Usage | undefined {
    const usage = this.#usage;
    if (how === 'complete' && usage !== undefined) return usage;
    if (how === 'error' && !this.#content) return undefined;
    const seen = estimateTokens(this.#words + this.#wholes) + Math.floor((this.#passed * this.#share()) / 4);
    if (usage === undefined)
      return isChat(this.call.outline) ? this.#estimated(this.#input(), this.#allowed(seen)) : this.#whole(1);
    if (seen === 0) return usage;
    const output = Math.max(usage.output, this.#allowed(usage.output + seen));
    return { ...usage, output, estimated: true };
  }

  /** Returns the usage of a call whose client left before the response: the input, for each provider that has received it. */
  #inputUsage(): Usage | undefined {
    const readers = accountOf(this.call).attempts.readers - this.#before;
    if (readers <= 0) return undefined;
    return isChat(this.call.outline) ? this.#read(readers) : this.#whole(readers);
  }

  /** The input of a chat in so many requests, each with its fee. */
  #read(requests: number): Usage {
    return {
      ...this.#estimated(requests * this.#input(), 0),
      ...(requests > 1 ? { units: { calls: requests } } : {}),
    };
  }

  /** Returns the usage of a response that is no chat, which is made as a whole or not at all, so that all of it is charged. */
  #whole(readers: number): Usage {
    const { outline: request, codec } = this.call;
    const output = isChat(request) ? 0 : (codec.estimate?.(request).output ?? 0);
    const units = expectedUnits(this.call);
    return {
      ...this.#estimated(readers * this.#input(), output),
      units: readers > 1 ? { ...units, calls: readers } : units,
    };
  }

  #estimated(input: number, output: number): Usage {
    return {
      input: Math.min(mostTokens, input),
      output: Math.min(mostTokens, output),
      cacheRead: 0,
      cacheWrite: 0,
      reasoning: 0,
      estimated: true,
    };
  }

  #input(): number {
    return Math.min(estimateInput(this.call), this.#bound(this.call).input);
  }

  #allowed(output: number): number {
    return Math.min(output, this.#bound(this.call).output.most);
  }

  /** Returns the share of text in a passing stream, by a sample of its beginning. */
  #share(): number {
    if (this.#passed === 0 || this.#sample === undefined) return 0;
    const decoder = this.call.codec.decodeStream?.({});
    if (decoder === undefined) return fallbackShare;
    let words = 0;
    try {
      for (const frame of parseSse(Buffer.concat(this.#sample))) {
        for (const event of decoder.frame(frame)) words += wordBytes(event);
      }
    } catch {
      // The sample may end inside of a frame. The frames before it are valid, because others would not have been passed on.
      if (words === 0) return fallbackShare;
    }
    return words / this.#sampled;
  }
}

/** Returns usage that can be charged: whole numbers from 0 to a maximum. */
function sound(usage: Usage): Usage {
  const { otherModels } = usage;
  if (isWhole(usage) && otherModels?.every((one) => isWhole(one.usage)) !== false) return usage;
  return {
    ...usage,
    ...wholeTokens(usage),
    ...(otherModels === undefined
      ? {}
      : { otherModels: otherModels.map((one) => ({ ...one, usage: wholeTokens(one.usage) })) }),
  };
}

function isWhole({
  input,
  output,
  cacheRead,
  cacheWrite,
  reasoning,
  cacheWriteLong = 0,
}: TokenCounts): boolean {
  return [input, output, cacheRead, cacheWrite, reasoning, cacheWriteLong].every(isSound);
}

function wholeTokens({
  input,
  output,
  cacheRead,
  cacheWrite,
  reasoning,
  cacheWriteLong = 0,
}: TokenCounts): TokenCounts {
  return {
    input: whole(input),
    output: whole(output),
    cacheRead: whole(cacheRead),
    cacheWrite: whole(cacheWrite),
    reasoning: whole(reasoning),
    cacheWriteLong: whole(cacheWriteLong),
  };
}

function isSound(tokens: number): boolean {
  return Number.isInteger(tokens) && tokens >= 0 && tokens <= mostTokens;
}

function whole(tokens: number): number {
  return Number.isNaN(tokens) ? 0 : Math.min(mostTokens, Math.max(0, Math.ceil(tokens)));
}

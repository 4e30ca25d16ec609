/** Continues traces by W3C Trace Context (`traceparent`, `tracestate`), and decides which calls are sampled. */
import type { Context, SpanContext } from '@opentelemetry/api';
import type { IdGenerator, Sampler } from '@opentelemetry/sdk-trace';
import { callKey, type Call, type Target } from 'sluice';
import type { Packages } from './packages.ts';

/** Maximum number of requests to providers of one call whose span ids are kept. */
const maxSent = 64;

/** Position of a call in its trace. */
export interface TraceIdentity {
  readonly traceId: string;
  /** The id of the span of the call. */
  readonly spanId: string;
  readonly isSampled: boolean;
  /** The context of the span above: the client's, or that of the call on whose behalf this one is made. */
  readonly parent: Context;
  readonly traceState: SpanContext['traceState'];
  /** The requests to providers that carried an id, in their order. */
  readonly sent: { readonly target: Target; readonly spanId: string }[];
}

const identity = callKey<TraceIdentity>('trace identity');

/**
 * Continues the traces of clients, and decides for each call whether it is recorded. The decision is made on first use: for most calls that
 * is when they have ended.
 */
export class TraceContexts {
  readonly #packages: Packages;
  readonly #sampler: Sampler;
  readonly #random: IdGenerator;
  readonly #propagator;

  constructor(packages: Packages, ratio: number) {
    const { core, trace } = packages;
    this.#packages = packages;
    this.#sampler = new trace.ParentBasedSampler({ root: new trace.TraceIdRatioBasedSampler(ratio) });
    this.#random = new trace.RandomIdGenerator();
    this.#propagator = new core.W3CTraceContextPropagator();
  }

  /** Returns the position of a call in its trace, the same each time. */
  of(call: Call): TraceIdentity {
    const known = call.get(identity);
    if (known !== undefined) return known;
    const made = this.#identify(call);
    call.set(identity, made);
    return made;
  }

  /** Returns the id of a span that is made now. */
  newSpanId(): string {
    return this.#random.generateSpanId();
  }

  /** Returns the headers that continue the trace of a call at a provider. */
  headersFor(call: Call, target: Target): Record<string, string> {
    const { traceId, isSampled, traceState, sent } = this.of(call);
    const spanId = this.#random.generateSpanId();
    if (sent.length < maxSent) sent.push({ target, spanId });
    const state = traceState?.serialize() ?? '';
    return {
      traceparent: `00-${traceId}-${spanId}-0${isSampled ? 1 : 0}`,
      ...(state === '' ? {} : { tracestate: state }),
    };
  }

  #identify(call: Call): TraceIdentity {
    const { api, trace } = this.#packages;
    const parent = call.parent === undefined ? this.#received(call) : this.#within(call.parent);
    const above = api.trace.getSpanContext(parent);
    const traceId = above?.traceId ?? this.#random.generateTraceId();
    const { decision } = this.#sampler.shouldSample(parent, traceId, '', api.SpanKind.SERVER, {}, []);
    return {
      traceId,
      spanId: this.#random.generateSpanId(),
      isSampled: decision === trace.SamplingDecision.RECORD_AND_SAMPLED,
      parent,
      traceState: above?.traceState,
      sent: [],
    };
  }

  /** Returns the context that a client has sent; without one, or with one that is malformed, a trace begins here. */
  #received({ wire: { headers } }: Call): Context {
    const { api } = this.#packages;
    if (headers['traceparent'] === undefined) return api.ROOT_CONTEXT;
    return this.#propagator.extract(api.ROOT_CONTEXT, headers, api.defaultTextMapGetter);
  }

  /** Returns the context of another call of this gateway. */
  #within(call: Call): Context {
    const { api } = this.#packages;
    return api.trace.setSpanContext(api.ROOT_CONTEXT, this.contextOf(call));
  }

  /** Returns the context of the span of a call. */
  contextOf(call: Call): SpanContext {
    const { api } = this.#packages;
    const { traceId, spanId, isSampled, traceState } = this.of(call);
    return {
      traceId,
      spanId,
      traceFlags: isSampled ? api.TraceFlags.SAMPLED : api.TraceFlags.NONE,
      ...(traceState === undefined ? {} : { traceState }),
    };
  }
}

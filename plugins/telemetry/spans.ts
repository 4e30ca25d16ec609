/** Writes the spans of an ended call: of the call, of its attempts, and of plugins. */
import type { SpanContext, SpanStatus } from '@opentelemetry/api';
import type { Resource } from '@opentelemetry/resources';
import type { SpanProcessor } from '@opentelemetry/sdk-trace';
import { callKey, type Call, type CallAttempt, type PluginTime } from 'sluice';
import { contentAttributes, maxMessage, startOf, type EndedCall } from './call-attributes.ts';
import { EndedSpan, type SpanFacts } from './ended-span.ts';
import type { TelemetryOptions } from './options.ts';
import type { Packages } from './packages.ts';
import type { Redactor } from './redact.ts';
import { present, word } from './settings.ts';
import type { TraceContexts, TraceIdentity } from './trace-context.ts';

/** Times of the plugins that a call met, where spans of plugins are on. */
export const pluginTimes = callKey<PluginTime[]>('plugin times');

/** Options of {@link SpanWriter}. */
export interface SpanWriterOptions {
  readonly processor: SpanProcessor;
  readonly resource: Resource;
  readonly traces: TraceContexts;
  readonly packages: Packages;
  readonly options: TelemetryOptions;
  readonly redact: Redactor;
}

/** Values that differ between the spans of one call. */
type Part = Omit<SpanFacts, 'resource'>;

/** Writes the spans of calls that have ended: one for the call, below it one for each attempt, and for plugins where that is on. */
export class SpanWriter {
  readonly #options: SpanWriterOptions;
  readonly #unset: SpanStatus;

  constructor(options: SpanWriterOptions) {
    this.#options = options;
    this.#unset = { code: options.packages.api.SpanStatusCode.UNSET };
  }

  /** Writes the spans of one call. Nothing is written for a call that is not sampled. */
  write(ended: EndedCall): void {
    const { traces, packages, options, redact } = this.#options;
    const { call, outcome, operation } = ended;
    const identity = traces.of(call);
    if (!identity.isSampled) return;
    const { api } = packages;
    const start = startOf(call);
    const attributes =
      options.content === 'full'
        ? { ...ended.attributes(), ...contentAttributes(ended, options, redact) }
        : ended.attributes();
    const model = attributes['gen_ai.request.model'];
    const context = traces.contextOf(call);
    // By the conventions for HTTP, an error of a client is no error of the server.
    const isError = outcome.status >= 500 || outcome.ended === 'interrupted';
    this.#add({
      name: model === undefined ? operation : `${operation} ${String(model)}`,
      kind: api.SpanKind.SERVER,
      context,
      parent: api.trace.getSpanContext(identity.parent),
      start,
      end: start + outcome.times.totalMs,
      attributes,
      status: isError ? this.#failed(ended.errorType, outcome.error?.message) : this.#unset,
    });
    this.#addAttempts(ended, identity, context, start);
    this.#addPlugins(call, context, start);
  }

  #addAttempts(
    { outcome, providerOf, errorType }: EndedCall,
    identity: TraceIdentity,
    parent: SpanContext,
    start: number,
  ): void {
    const { traces, packages } = this.#options;
    const sent = [...identity.sent];
    outcome.attempts.forEach((attempt, index) => {
      const { failure, cause, channel } = attempt;
      // An attempt that responded may have broken off.
      const error = failure ?? (outcome.ended === 'interrupted' ? errorType : undefined);
      const begin = attempt.startMs ?? outcome.times.queuedMs ?? 0;
      this.#add({
        name: `attempt ${channel}`,
        kind: packages.api.SpanKind.CLIENT,
        context: { ...parent, spanId: takeSpanId(sent, attempt) ?? traces.newSpanId() },
        parent,
        start: start + begin,
        end: start + (attempt.endMs ?? outcome.times.totalMs),
        attributes: present({
          'gen_ai.provider.name': providerOf(channel),
          'error.type': error,
          'http.response.status_code': failure === undefined ? 200 : cause?.status,
          'sluice.attempt': index + 1,
          'sluice.attempt.failure': failure,
          'sluice.attempt.model': word(attempt.model),
          'sluice.channel': channel,
          'sluice.channel.key.id': attempt.key,
          'sluice.format': attempt.format,
        }),
        // A parallel attempt that was given up did nothing wrong.
        status: error === undefined || error === 'hedged' ? this.#unset : this.#failed(error, cause?.message),
      });
    });
  }

  #addPlugins(call: Call, parent: SpanContext, start: number): void {
    const { traces, packages } = this.#options;
    for (const { plugin, startedAt, endedAt } of call.get(pluginTimes) ?? [])
      this.#add({
        name: `plugin ${plugin}`,
        kind: packages.api.SpanKind.INTERNAL,
        context: { ...parent, spanId: traces.newSpanId() },
        parent,
        start: start + startedAt - call.startedAt,
        end: start + endedAt - call.startedAt,
        attributes: { 'sluice.plugin': plugin },
        status: this.#unset,
      });
  }

  #add(part: Part): void {
    const { processor, resource } = this.#options;
    processor.onEnd(new EndedSpan({ ...part, resource }));
  }

  /** Causes may quote a request: they are shown where its texts are. */
  #failed(code: string | undefined, message: string | undefined): SpanStatus {
    const { packages, options, redact } = this.#options;
    const shown = options.content === 'full' && message !== undefined ? redact(message, maxMessage) : code;
    return { code: packages.api.SpanStatusCode.ERROR, ...(shown === undefined ? {} : { message: shown }) };
  }
}

/** Returns the span id that the first request of an attempt carried; undefined where it carried none. */
function takeSpanId(sent: TraceIdentity['sent'], { channel, key, model }: CallAttempt): string | undefined {
  const index = sent.findIndex(
    ({ target }) => target.channel.id === channel && target.model === model && (key ?? '') === target.key.id,
  );
  return index < 0 ? undefined : sent.splice(index, 1)[0]?.spanId;
}

import type { Span, Tracer } from '@opentelemetry/api';
import { callKey, type Call, type CallAttempt } from 'sluice';
import { contentAttributes, startOf, type EndedCall } from './call-attributes.ts';
import type { TelemetryOptions } from './options.ts';
import type { Packages } from './packages.ts';
import type { Redactor } from './redact.ts';
import { present } from './settings.ts';
import type { PresetIds, TraceContexts, TraceIdentity } from './trace-context.ts';

/** Times of the plugins that a call met, where spans of plugins are on. */
export const pluginTimes =
  callKey<{ readonly plugin: string; readonly startedAt: number; readonly endedAt: number }[]>(
    'plugin times',
  );

/** What {@link SpanWriter} works with. */
export interface SpanWriterOptions {
  readonly tracer: Tracer;
  readonly ids: PresetIds;
  readonly traces: TraceContexts;
  readonly packages: Packages;
  readonly options: TelemetryOptions;
  readonly redact: Redactor;
}

/** Writes the spans of calls that have ended: one for the call, below it one for each attempt, and for plugins where that is on. */
export class SpanWriter {
  readonly #options: SpanWriterOptions;

  constructor(options: SpanWriterOptions) {
    this.#options = options;
  }

  /** Writes the spans of one call. Nothing is written for a call that is not sampled. */
  write(ended: EndedCall): void {
    const { tracer, ids, traces, packages, options, redact } = this.#options;
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
    ids.preset(identity.traceId, identity.spanId);
    const span = tracer.startSpan(
      model === undefined ? operation : `${operation} ${String(model)}`,
      { kind: api.SpanKind.SERVER, startTime: start, attributes },
      identity.parent,
    );
    // What a client did wrong is no error of a server, by the conventions for HTTP.
    if (outcome.status >= 500 || outcome.ended === 'interrupted')
      this.#fail(span, ended.errorType, outcome.error?.message);
    this.#writeAttempts(ended, identity, span, start);
    this.#writePlugins(call, span, start);
    span.end(start + outcome.times.totalMs);
  }

  #writeAttempts(
    { outcome, provider }: EndedCall,
    identity: TraceIdentity,
    parent: Span,
    start: number,
  ): void {
    const { tracer, ids, packages } = this.#options;
    const { api } = packages;
    const context = api.trace.setSpan(api.ROOT_CONTEXT, parent);
    const sent = [...identity.sent];
    outcome.attempts.forEach((attempt, index) => {
      const { failure, cause } = attempt;
      const begin = attempt.startMs ?? outcome.times.queuedMs ?? 0;
      ids.preset(identity.traceId, takeSpanId(sent, attempt));
      const span = tracer.startSpan(
        `attempt ${attempt.channel}`,
        {
          kind: api.SpanKind.CLIENT,
          startTime: start + begin,
          attributes: present({
            'gen_ai.provider.name':
              attempt.channel === outcome.attempts.at(-1)?.channel ? provider : undefined,
            'error.type': failure,
            'http.response.status_code': failure === undefined ? 200 : cause?.status,
            'sluice.attempt': index + 1,
            'sluice.attempt.failure': failure,
            'sluice.attempt.model': attempt.model,
            'sluice.channel': attempt.channel,
            'sluice.channel.key.id': attempt.key,
            'sluice.format': attempt.format,
          }),
        },
        context,
      );
      // A parallel attempt that was given up did nothing wrong.
      if (failure !== undefined && failure !== 'hedged') this.#fail(span, failure, cause?.message);
      span.end(start + Math.max(begin, attempt.endMs ?? outcome.times.totalMs));
    });
  }

  #writePlugins(call: Call, parent: Span, start: number): void {
    const times = call.get(pluginTimes);
    if (times === undefined) return;
    const { tracer, packages } = this.#options;
    const context = packages.api.trace.setSpan(packages.api.ROOT_CONTEXT, parent);
    for (const { plugin, startedAt, endedAt } of times) {
      const startTime = start + startedAt - call.startedAt;
      const span = tracer.startSpan(
        `plugin ${plugin}`,
        { startTime, attributes: { 'sluice.plugin': plugin } },
        context,
      );
      span.end(startTime + endedAt - startedAt);
    }
  }

  /** Causes may quote a request: they are shown where its texts are. */
  #fail(span: Span, code: string | undefined, message: string | undefined): void {
    const { packages, options, redact } = this.#options;
    const told = options.content === 'full' && message !== undefined ? redact(message, 1_000) : code;
    span.setStatus({
      code: packages.api.SpanStatusCode.ERROR,
      ...(told === undefined ? {} : { message: told }),
    });
  }
}

/** Takes the span id that the first request of an attempt carried; undefined where it carried none. */
function takeSpanId(sent: TraceIdentity['sent'], { channel, key, model }: CallAttempt): string | undefined {
  const index = sent.findIndex(
    ({ target }) => target.channel.id === channel && target.model === model && (key ?? '') === target.key.id,
  );
  return index < 0 ? undefined : sent.splice(index, 1)[0]?.spanId;
}

import type { Attributes, Meter } from '@opentelemetry/api';
import type { EndedCall } from './call-attributes.ts';
import type { Channels } from './channels.ts';
import type { Losses } from './losses.ts';

/** Boundaries that the GenAI conventions recommend. */
const durations = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
const firstTokens = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];
const perToken = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5];
const tokens = [
  1, 4, 16, 64, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216, 67_108_864,
];
const dollars = [0.0001, 0.001, 0.01, 0.1, 1, 10, 100];

/** Maximum number of combinations of operation, provider, model, channel and error that are distinguished. */
const maxSeries = 2_000;

/** Stands for the provider and the model of calls beyond {@link maxSeries}, which have no channel. */
const other = 'other';

/** Records the metrics of calls that have ended. The number of series is bounded, because receivers keep each of them. */
export class Instruments {
  readonly #channels: Channels;
  readonly #series = new Set<string>();
  readonly #requests;
  readonly #firstTokens;
  readonly #perToken;
  readonly #attempts;
  readonly #tokens;
  readonly #cost;

  constructor(meter: Meter, channels: Channels, losses: Losses) {
    this.#channels = channels;
    const histogram = (name: string, unit: string, description: string, boundaries: number[]) =>
      meter.createHistogram(name, { unit, description, advice: { explicitBucketBoundaries: boundaries } });
    this.#requests = histogram('gen_ai.server.request.duration', 's', 'Duration of calls.', durations);
    this.#firstTokens = histogram(
      'gen_ai.server.time_to_first_token',
      's',
      'Time from the request to the first token of calls that went well.',
      firstTokens,
    );
    this.#perToken = histogram(
      'gen_ai.server.time_per_output_token',
      's',
      'Time for each output token behind the first one, of streams that went well.',
      perToken,
    );
    this.#attempts = histogram(
      'gen_ai.client.operation.duration',
      's',
      'Duration of attempts at providers.',
      durations,
    );
    this.#tokens = histogram('gen_ai.client.token.usage', '{token}', 'Tokens of calls by type.', tokens);
    this.#cost = histogram('gen_ai.usage.cost', 'USD', 'Cost of calls whose model has a price.', dollars);
    const dropped = meter.createCounter('sluice.telemetry.dropped', {
      description: 'Spans, log records and exports of metrics that were not exported.',
    });
    losses.observe((signal, reason, count) =>
      dropped.add(count, { 'sluice.signal': signal, 'error.type': reason }),
    );
  }

  /** Records one call. */
  record({ call, outcome, operation, provider, providerOf, channel, errorType }: EndedCall): void {
    const { times, usage, cost } = outcome;
    const model = this.#channels.label(call.askedModel);
    const attributes = this.#attributes(operation, provider, model, channel);
    const isSuccess = errorType === undefined;
    this.#requests.record(
      times.totalMs / 1000,
      isSuccess ? attributes : this.#attributes(operation, provider, model, channel, errorType),
    );
    if (isSuccess && call.stream && times.firstMs !== undefined) {
      this.#firstTokens.record(times.firstMs / 1000, attributes);
      const further = (usage?.output ?? 0) - 1;
      if (further > 0) this.#perToken.record((times.totalMs - times.firstMs) / 1000 / further, attributes);
    }
    if (usage !== undefined) {
      this.#tokens.record(usage.input, { ...attributes, 'gen_ai.token.type': 'input' });
      this.#tokens.record(usage.output, { ...attributes, 'gen_ai.token.type': 'output' });
    }
    if (cost !== undefined) this.#cost.record(cost.microDollars / 1e6, attributes);
    for (const attempt of outcome.attempts) {
      if (attempt.startMs === undefined || attempt.endMs === undefined) continue;
      const by = providerOf(attempt.channel);
      this.#attempts.record(
        (attempt.endMs - attempt.startMs) / 1000,
        this.#attributes(operation, by, model, attempt.channel, attempt.failure),
      );
    }
  }

  #attributes(
    operation: string,
    provider: string,
    model: string,
    channel: string | undefined,
    errorType?: string,
  ): Attributes {
    const name = `${operation} ${provider} ${model} ${channel ?? ''} ${errorType ?? ''}`;
    const isKnown = this.#series.has(name) || this.#series.size < maxSeries;
    if (isKnown) this.#series.add(name);
    return {
      'gen_ai.operation.name': operation,
      'gen_ai.provider.name': isKnown ? provider : other,
      'gen_ai.request.model': isKnown ? model : other,
      ...(channel === undefined || !isKnown ? {} : { 'sluice.channel': channel }),
      ...(errorType === undefined ? {} : { 'error.type': errorType }),
    };
  }
}

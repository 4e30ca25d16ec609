/** Calls that are counted and not in the counters yet. */
import type { Usage } from 'sluice';

/** Types of tokens, as values of a label. */
export const tokenKinds = ['input', 'output', 'cache_read', 'cache_write', 'reasoning'] as const;

/** Labels of a call. */
type Labels = Readonly<Record<'operation' | 'format' | 'channel' | 'model' | 'status' | 'code', string>>;

/** Calls of the same labels, added up. */
export class PendingCalls {
  readonly labels: Labels;
  readonly ofTimes: Pick<Labels, 'operation' | 'channel'>;
  calls = 0;
  microDollars = 0;
  readonly tokens: Record<(typeof tokenKinds)[number], number> = {
    input: 0,
    output: 0,
    cache_read: 0,
    cache_write: 0,
    reasoning: 0,
  };

  constructor(labels: Labels) {
    this.labels = labels;
    const { operation, channel } = labels;
    this.ofTimes = { operation, channel };
  }

  add({ input, output, cacheRead, cacheWrite, reasoning }: Usage): void {
    this.tokens.input += positive(input);
    this.tokens.output += positive(output);
    this.tokens.cache_read += positive(cacheRead);
    this.tokens.cache_write += positive(cacheWrite);
    this.tokens.reasoning += positive(reasoning);
  }
}

/** Returns the count, or 0 unless it is positive, because a provider may report any number. */
function positive(tokens: number): number {
  return tokens > 0 ? tokens : 0;
}

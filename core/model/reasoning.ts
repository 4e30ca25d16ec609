/** Reasoning efforts, in ascending order. */
export type Effort = 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max';

/** All efforts, ascending. */
export const efforts: readonly Effort[] = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'];

/**
 * Reasoning settings of the client. Absent members were not set and get no default. `effort` and `budget` (tokens) express the same
 * setting; a format that has only the other one converts it with the tables below.
 *
 * @example
 * return next(call.with({ settings: { reasoning: { effort: 'low' } } }));
 */
export interface Reasoning {
  /** `adaptive`: the model decides. `between-tools`: only notes between tool calls (messages). */
  readonly mode?: 'on' | 'off' | 'adaptive' | 'between-tools';
  readonly effort?: Effort;
  /** Most reasoning tokens. -1 is generateContent's "dynamic". */
  readonly budget?: number;
  /** Visibility of the reasoning in the response, with the client's own value. */
  readonly show?: boolean;
  /** The client's own word for the display: `summarized`, `omitted`, `auto`, `concise`, `detailed`. */
  readonly display?: string;
}

/** Budget for an effort; the triple 1024/8192/24576 is the one Google publishes for its chat-compatible endpoint. `max` is left to the model's limit. */
export const budgetOfEffort: Readonly<Record<Effort, number>> = {
  none: 0,
  minimal: 1024,
  low: 1024,
  medium: 8192,
  high: 24_576,
  xhigh: 32_768,
  max: 65_536,
};

/** The nearest effort for a token budget; undefined for -1 (dynamic), which leaves the choice to the model. */
export function effortOfBudget(budget: number): Effort | undefined {
  if (budget < 0) return undefined;
  if (budget === 0) return 'none';
  if (budget < 1024) return 'minimal';
  if (budget < 4096) return 'low';
  if (budget < 16_384) return 'medium';
  if (budget < 32_768) return 'high';
  return 'xhigh';
}

/** Reads an effort in any case; undefined when the word is not one. */
export function effortFrom(word: unknown): Effort | undefined {
  if (typeof word !== 'string') return undefined;
  const lower = word.toLowerCase();
  return efforts.find((effort) => effort === lower);
}

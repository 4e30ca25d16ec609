/**
 * What a model behind a channel can do, as far as it changes how a request is written. The channel states it per model;
 * absent means the format's ordinary behaviour.
 */
export interface ModelTraits {
  /** The formats that this model answers in for chat, best first, where they are not all that its channel speaks. */
  readonly formats?: readonly string[];
  /**
   * How reasoning is asked for. messages: `adaptive` (effort) or `budget` (tokens); generateContent: `level` or `budget`;
   * chat completions: `effort` (official), `thinking` (DeepSeek's switch), `object` (a `reasoning` object), `none` (not at all).
   */
  readonly reasoning?: 'adaptive' | 'budget' | 'level' | 'effort' | 'thinking' | 'object' | 'none';
  /** Efforts that the model takes; others are moved to the nearest lower one, else the lowest. */
  readonly efforts?: readonly string[];
  /** Most output tokens: fills a required limit that the client did not give, and clamps budgets. */
  readonly outputLimit?: number;
  /** Names of `ChatSettings` that the model refuses: dropped and reported. `customTools`: tools that take free text go as functions. */
  readonly refuses?: readonly string[];
  /** Which field carries the output limit in chat completions. Default `max_completion_tokens`. */
  readonly outputLimitField?: 'max_tokens' | 'max_completion_tokens';
  /** The role of instructions in chat completions. Default `system`. */
  readonly systemRole?: 'system' | 'developer';
  /** False when the provider does not fetch image URLs by itself, so that bytes must be sent. */
  readonly fetchesUrls?: boolean;
  /** False when the model has no native JSON-schema output: a forced tool stands in. */
  readonly jsonSchema?: boolean;
  /** False when the model takes no system message in the middle of the history. */
  readonly midSystem?: boolean;
  /** True when earlier reasoning text must come back with tool calls (DeepSeek's `reasoning_content`). */
  readonly replaysReasoning?: boolean;
  /** True when `<think>` at the head of an answer is reasoning. */
  readonly inlineThinking?: boolean;
  /** Longest tool name. */
  readonly toolNameLimit?: number;
  /** Longest context in tokens, for model lists. */
  readonly inputLimit?: number;
}

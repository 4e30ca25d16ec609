/** Traits of a model: how requests to it must be written, and what it refuses. */
import type { RefusedMember } from './refused-member.ts';

/**
 * What a model behind a channel can do, as far as it changes how a request is written. The channel states it per model;
 * absent means the format's ordinary behaviour.
 *
 * @example
 * traits: { 'mine-thinker-*': { reasoning: 'effort', outputLimitField: 'max_tokens' } }
 */
export interface ModelTraits {
  /** The formats that this model answers in for chat, best first, where they are not all that its channel speaks. */
  readonly formats?: readonly string[];
  /** Traits of the model where it is asked in one of its other formats, by the name of that format. But for limits and `fetchesUrls`, they stand in place of all others. */
  readonly byFormat?: Readonly<Record<string, Omit<ModelTraits, 'byFormat'>>>;
  /**
   * The format in which the model searches the web and runs code by itself, where it does not in all that it answers in: clients of other
   * formats that ask for that are served in it.
   */
  readonly serverTools?: string;
  /** Formats in which the provider calls the MCP servers of a request by itself: `['responses']`. Default: none. */
  readonly mcp?: readonly string[];
  /**
   * The format in which the model thinks about calls with function tools, where its other formats refuse that: clients of other formats are served
   * in it. Where the channel does not speak it, thinking is switched off for the call.
   */
  readonly functionTools?: string;
  /**
   * How reasoning is controlled. messages: `adaptive` (effort), `budget` (tokens; an effort beside it where {@link efforts} are stated) or `thinking`
   * (`enabled` with an effort, or `disabled`); generateContent: `level` or `budget`; chat completions:
   * - `effort`: `reasoning_effort` (official).
   * - `object`: `reasoning: { effort | max_tokens | enabled }` (OpenRouter).
   * - `thinking`: `thinking: { type: 'enabled' | 'disabled' }`, with `reasoning_effort` where {@link efforts} has more than `none` (DeepSeek).
   * - `enable-thinking`: `enable_thinking: boolean`, with `thinking_budget` where {@link thinkingBudget} is stated (DashScope).
   * - `template`: `chat_template_kwargs: { [templateSwitch]: boolean }` (vLLM, SGLang).
   * - `none`: not at all. The model does not think, or always thinks alike.
   *
   * Converse: `adaptive` and `budget` as in messages; `level` (`reasoningConfig`), `effort` (`reasoning_effort`) and `object`
   * (`reasoning: { effort }`) in `additionalModelRequestFields`.
   */
  readonly reasoning?:
    | 'adaptive'
    | 'budget'
    | 'level'
    | 'effort'
    | 'object'
    | 'thinking'
    | 'enable-thinking'
    | 'template'
    | 'none';
  /** Efforts that the model takes; others are moved to the nearest lower one, else the lowest. `none` stands for itself alone, unless there is no other. */
  readonly efforts?: readonly string[];
  /** Efforts that the model does not take, with the one that stands for each in place of the nearest lower one: `{ medium: 'high' }`. */
  readonly effortAs?: Readonly<Record<string, string>>;
  /** Range of the tokens that a budget for reasoning may have. Budgets are moved into it. Absent in the dialects that have a budget beside a switch: no budget is sent. */
  readonly thinkingBudget?: { readonly min?: number; readonly max?: number };
  /** Name of the switch in `chat_template_kwargs`. Default `enable_thinking`. */
  readonly templateSwitch?: string;
  /** Name of the member that holds arguments of the template. Default `chat_template_kwargs`. */
  readonly templateMember?: 'chat_template_kwargs' | 'chat_template_args';
  /** Word of `thinking.type` that switches thinking on. Default `enabled`. */
  readonly thinkingType?: 'enabled' | 'adaptive';
  /** True when the model thinks in streams alone: for a whole reply that it thinks about, the provider is asked for a stream. */
  readonly thinksInStreamsOnly?: boolean;
  /** True when the model thinks unless it is told not to. */
  readonly thinksByDefault?: boolean;
  /** False when the model cannot be told not to think. Default: `efforts` has `none` where it is stated, else true. */
  readonly stopsThinking?: boolean;
  /** False when the model takes no tools: requests with some are refused with 400, or go without them where the operator lets drop what cannot be carried. */
  readonly tools?: false;
  /**
   * When a tool can be forced (`tool_choice` other than `auto` and `none`, and structured output that a forced tool stands in for). Where
   * thinking is in the way, it is switched off for the call; `auto` is sent where it cannot be. Default `always`.
   */
  readonly forcedTools?: 'always' | 'without-thinking' | 'never';
  /** False when no tool can be forced by its name: the model gets that tool alone, and must call one. */
  readonly namedTools?: false;
  /** False when the model refuses the `type` of a function (`custom`) in the messages format, which says nothing more. */
  readonly toolTypes?: false;
  /** False when the model takes no `required`: the only tool of a request is forced by its name, and among several the model chooses. */
  readonly requiredTools?: false;
  /** False when the model gives no JSON while it thinks, by a schema or without one: it does not think then. */
  readonly jsonThinking?: false;
  /** Most output tokens: fills a required limit that the client did not give, and clamps budgets. */
  readonly outputLimit?: number;
  /** True when {@link outputLimit} is stated for exactly this model, not for a pattern: the gateway holds requests to it. */
  readonly statesOutputLimit?: boolean;
  /** Names of `ChatSettings` that the model refuses: dropped and reported. `customTools`: tools that take free text go as functions. `cache`: no cache points (Converse). */
  readonly refuses?: readonly string[];
  /**
   * Members of requests that the model refuses, in the words of the format that the channel speaks: `['logit_bias', 'reasoning.summary']`. They are
   * removed and reported, also where the client speaks the same format.
   */
  readonly refusedMembers?: readonly (string | RefusedMember)[];
  /** Which field carries the output limit in chat completions. Default `max_completion_tokens`. */
  readonly outputLimitField?: 'max_tokens' | 'max_completion_tokens';
  /** The role of instructions in chat completions. Default `system`. */
  readonly systemRole?: 'system' | 'developer';
  /** False when the provider fetches no URLs of images and files by itself: the gateway fetches them and sends their bytes. */
  readonly fetchesUrls?: boolean;
  /** False when the model has no native JSON-schema output: a forced tool stands in, or an instruction where {@link tools} is false. */
  readonly jsonSchema?: boolean;
  /** False when the model has no JSON output without a schema (`json_object`): a schema of any object stands in, or an instruction where {@link jsonSchema} is false, too. */
  readonly jsonObject?: boolean;
  /** Subset of JSON Schema that the model takes for structured output and strict tools. Schemas are adapted to it. Default: all of it. */
  readonly schemaSubset?: SchemaSubset;
  /**
   * Mark that ends a cached part of the input: `prompt_cache_breakpoint` (chat completions, Responses), `cache_control` (messages, chat
   * completions), `cachePoint` (Converse), or `none`. Marks that the model does not take are dropped and reported. Default: the format's own mark in
   * messages and Converse; in chat completions and Responses none, except that clients of the channel's own format keep the marks that they wrote.
   */
  readonly cacheMark?: 'none' | 'prompt_cache_breakpoint' | 'cache_control' | 'cachePoint';
  /** True when definitions of tools take the mark `cache_control` in chat completions, too; false when they do not in the messages format. */
  readonly marksTools?: boolean;
  /** True when the provider answers 400 to members that it does not document. Members that Sluice does not know the provider to take are removed and reported. */
  readonly refusesUnknown?: boolean;
  /**
   * Members of requests beyond those that become {@link ChatSettings}, messages and tools, which a provider with {@link refusesUnknown} takes: names
   * at the top (`logit_bias`, `store`), or dotted paths (`stream_options.include_obfuscation`).
   */
  readonly members?: readonly string[];
  /** Ranges of settings, by their names in `ChatSettings`, that are narrower than the format's. Values are moved into them and reported. */
  readonly ranges?: Readonly<Record<string, { readonly min?: number; readonly max?: number }>>;
  /** Name of the member in which replies of chat completions tell reasoning. Clients get `reasoning_content`. Default `reasoning_content`. */
  readonly reasoningField?: 'reasoning_content' | 'reasoning';
  /** Finish reasons of the provider that its format does not have, and the format's reason for each: `{ eos: 'stop' }`. Null for a word that is no end: `{ '': null }`. */
  readonly finishReasons?: Readonly<Record<string, string | null>>;
  /** True when turns of the user and of the assistant must alternate: adjacent turns of one of them go as one. */
  readonly alternates?: boolean;
  /** False when a turn of the history can hold one tool call alone: a turn with several goes as turns with a call and its result each. */
  readonly parallelHistory?: boolean;
  /** False when the provider takes a list of parts only where it holds more than texts: lists of texts are joined to one text. Chat completions alone. */
  readonly textParts?: false;
  /** False when the provider keeps no responses (Responses API): it gets earlier turns as input, and no `store`. */
  readonly keepsResponses?: false;
  /** False when the model takes no system message in the middle of the history. */
  readonly midSystem?: boolean;
  /** True when earlier reasoning text must come back with tool calls (DeepSeek's `reasoning_content`, a `thinking` block in the messages format). */
  readonly replaysReasoning?: boolean;
  /** True when the model streams the arguments of calls where it is asked to: generateContent on Vertex AI, from Gemini 3 on. */
  readonly streamsArguments?: boolean;
  /** True when `<think>` at the head of an answer is reasoning. */
  readonly inlineThinking?: boolean;
  /**
   * True when the history may end with a turn of the assistant, which the model then goes on with. In chat completions that turn says
   * `prefix: true`, as the providers that document it want.
   */
  readonly prefill?: boolean;
  /** Longest tool name. */
  readonly toolNameLimit?: number;
  /** Formats in which the model gives transcripts, where they are not all that there are. */
  readonly transcripts?: readonly string[];
  /** False when the model gives speech as the bytes of a file alone, and not as events. */
  readonly streamsSpeech?: boolean;
  /** Most texts of one request for embeddings, where the channel's own words have room for more: longer lists go in pieces. */
  readonly mostInputs?: number;
  /** Most tokens that a given image comes to, where they are more than the 16,384 that budgets reserve for it, or fewer. */
  readonly imageTokens?: number;
  /** How the model makes images. */
  readonly images?: ImageTraits;
  /** Longest context in tokens, for model lists. */
  readonly inputLimit?: number;
}

/** Part of JSON Schema that a model takes. */
export interface SchemaSubset {
  /** True when every object must have `additionalProperties: false`. */
  readonly closesObjects?: boolean;
  /** True when every property of an object must be required. Optional ones become nullable. */
  readonly requiresAll?: boolean;
  /** True when every object that names properties must require one of them: the first where none is. */
  readonly requiresOne?: boolean;
  /** Keywords that the model refuses, such as `minimum`. Their constraints move to the `description`. */
  readonly refuses?: readonly string[];
  /** Values of `format` that the model takes. Others move to the `description`. Default: all of them. */
  readonly formats?: readonly string[];
  /** Parts of regular expressions that the model refuses, such as `^`. A `pattern` with one of them moves to the `description`. */
  readonly refusedInPatterns?: readonly string[];
  /** Highest `minItems` that the model takes. Higher ones move to the `description`. */
  readonly highestMinItems?: number;
}

/** Where a model that makes images takes less than its format has room for, or answers otherwise. */
export interface ImageTraits {
  /** How images come, where that cannot be chosen. */
  readonly delivers?: 'url' | 'base64';
  /** False when the model has no streams. */
  readonly streams?: boolean;
  /** Longest prompt, in characters. */
  readonly promptLength?: number;
  /** Most images of one request. */
  readonly most?: number;
  readonly sizes?: readonly string[];
  /** Empty where the model has no such setting; so with styles. */
  readonly qualities?: readonly string[];
  readonly styles?: readonly string[];
  /** What an image to be edited must be: one file of this type, smaller than `below` bytes, as wide as it is high. Its mask has the same size. */
  readonly source?: { readonly mimeType: string; readonly below: number };
  /** generateContent: the largest images (`2K`, `4K`) that can be asked for. Default `1K`. */
  readonly largest?: '1K' | '2K' | '4K';
  /** generateContent: true for models that are asked by `:predict`. */
  readonly predicts?: boolean;
}

/** Traits of a model: the form of requests that it accepts, and the fields that it refuses. */
import type { RefusedMember } from './refused-member.ts';

/**
 * Capabilities of a model that change how a request to it is encoded. Channels set them per model. Without a trait, a model behaves like
 * its format.
 *
 * @example
 * traits: { 'mine-thinker-*': { reasoning: 'effort', outputLimitField: 'max_tokens' } }
 */
export interface ModelTraits {
  /** Formats of this model for chat, best first. Default: all formats of its channel. */
  readonly formats?: readonly string[];
  /**
   * Traits of the model in one of its other formats, by the name of that format. They replace all other traits except limits and
   * `fetchesUrls`.
   */
  readonly byFormat?: Readonly<Record<string, Omit<ModelTraits, 'byFormat'>>>;
  /**
   * Format in which the provider runs web search and code for the model, if not in all of its formats. Requests with such tools are sent in
   * this format, also from clients of other formats.
   */
  readonly serverTools?: string;
  /** Formats in which the provider itself calls the MCP servers of a request: `['responses']`. Default: none. */
  readonly mcp?: readonly string[];
  /**
   * Format in which the model supports reasoning together with function tools, if its other formats refuse that. Such requests are sent in
   * this format, also from clients of other formats. If the channel does not support the format, reasoning is switched off for the call.
   */
  readonly functionTools?: string;
  /**
   * Control of reasoning. messages: `adaptive` (effort), `budget` (tokens, with an effort if {@link efforts} is set) or `thinking`
   * (`enabled` with an effort, or `disabled`); generateContent: `level` or `budget`; chat completions:
   * - `effort`: `reasoning_effort` (official).
   * - `object`: `reasoning: { effort | max_tokens | enabled }` (OpenRouter).
   * - `thinking`: `thinking: { type: 'enabled' | 'disabled' }`, with `reasoning_effort` if {@link efforts} has more than `none` (DeepSeek).
   * - `enable-thinking`: `enable_thinking: boolean`, with `thinking_budget` if {@link thinkingBudget} is set (DashScope).
   * - `template`: `chat_template_kwargs: { [templateSwitch]: boolean }` (vLLM, SGLang).
   * - `none`: no control. The model does not reason, or always reasons in the same way.
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
  /**
   * Efforts that the model supports. Others are changed to the nearest lower one, or to the lowest. No other effort is changed to `none`,
   * unless it is the only one.
   */
  readonly efforts?: readonly string[];
  /** Replacements of efforts that the model does not support, in place of the nearest lower one: `{ medium: 'high' }`. */
  readonly effortAs?: Readonly<Record<string, string>>;
  /**
   * Range of reasoning budgets, in tokens. Budgets outside are clamped. Without it, no budget is sent in dialects where a budget is
   * optional.
   */
  readonly thinkingBudget?: { readonly min?: number; readonly max?: number };
  /** Name of the reasoning switch in `chat_template_kwargs`. Default: `enable_thinking`. */
  readonly templateSwitch?: string;
  /** Name of the field with arguments of the chat template. Default: `chat_template_kwargs`. */
  readonly templateMember?: 'chat_template_kwargs' | 'chat_template_args';
  /** Value of `thinking.type` that switches reasoning on. Default: `enabled`. */
  readonly thinkingType?: 'enabled' | 'adaptive';
  /**
   * True if the model supports reasoning only in streams. For a non-streamed response with reasoning, the provider is sent a streaming
   * request.
   */
  readonly thinksInStreamsOnly?: boolean;
  /** True if the model reasons by default. */
  readonly thinksByDefault?: boolean;
  /** False if reasoning cannot be switched off. Default: true if `efforts` has `none` or is not set. */
  readonly stopsThinking?: boolean;
  /**
   * False if the model does not support tools. Requests with tools get 400, or are sent without them if the option `unsupported` of the
   * translation plugin is `drop`.
   */
  readonly tools?: false;
  /**
   * Support for forced tools: `tool_choice` other than `auto` and `none`, and structured output that is emulated by a forced tool.
   * `without-thinking`: reasoning is switched off for such a call, or `auto` is sent if it cannot be switched off. Default: `always`.
   */
  readonly forcedTools?: 'always' | 'without-thinking' | 'never';
  /** False if a tool cannot be forced by its name. The request is then sent with that tool alone and with `required`. */
  readonly namedTools?: false;
  /**
   * False if the model refuses the `type` of a function (`custom`) in the messages format. The field is omitted, because it is the default.
   */
  readonly toolTypes?: false;
  /** False if the model does not support `required`. A single tool is then forced by its name; with several tools, the model chooses. */
  readonly requiredTools?: false;
  /** False if the model does not support JSON output, with or without a schema, together with reasoning. Reasoning is then switched off. */
  readonly jsonThinking?: false;
  /** Maximum output tokens. Used for a required limit that the client did not set, and to clamp reasoning budgets. */
  readonly outputLimit?: number;
  /**
   * True if {@link outputLimit} is known for exactly this model, not for a pattern. The option `outputLimit` of the translation plugin then
   * applies to requests.
   */
  readonly statesOutputLimit?: boolean;
  /**
   * Names of `ChatSettings` that the model refuses. They are dropped and reported. `customTools`: tools with free-text input are sent as
   * functions. `cache`: no cache points (Converse).
   */
  readonly refuses?: readonly string[];
  /**
   * Request fields that the model refuses, as paths in the channel's format: `['logit_bias', 'reasoning.summary']`. They are removed and
   * reported, also if the client uses the same format.
   */
  readonly refusedMembers?: readonly (string | RefusedMember)[];
  /** Name of the field with the output limit in chat completions. Default: `max_completion_tokens`. */
  readonly outputLimitField?: 'max_tokens' | 'max_completion_tokens';
  /** Role of instructions in chat completions. Default: `system`. */
  readonly systemRole?: 'system' | 'developer';
  /** False if the provider does not fetch URLs of images and files. The gateway then fetches them and sends their bytes. */
  readonly fetchesUrls?: boolean;
  /**
   * False if the model has no native JSON-schema output. It is then emulated by a forced tool, or by an instruction if {@link tools} is
   * false.
   */
  readonly jsonSchema?: boolean;
  /**
   * False if the model has no JSON output without a schema (`json_object`). It is then emulated by a schema that accepts any object, or by
   * an instruction if {@link jsonSchema} is false too.
   */
  readonly jsonObject?: boolean;
  /**
   * Subset of JSON Schema that the model supports for structured output and strict tools. Schemas are adapted to it. Default: all of JSON
   * Schema.
   */
  readonly schemaSubset?: SchemaSubset;
  /**
   * Mark that ends a cached part of the input: `prompt_cache_breakpoint` (chat completions, Responses), `cache_control` (messages, chat
   * completions), `cachePoint` (Converse), or `none`. Marks that the model does not support are dropped and reported. Default: the mark of
   * the format in messages and Converse; none in chat completions and Responses, where only clients of the channel's own format keep their
   * marks.
   */
  readonly cacheMark?: 'none' | 'prompt_cache_breakpoint' | 'cache_control' | 'cachePoint';
  /** Support for the mark `cache_control` in tool definitions. True: also in chat completions. False: not even in the messages format. */
  readonly marksTools?: boolean;
  /** True if the provider returns 400 for undocumented fields. Fields that are not in {@link members} are then removed and reported. */
  readonly refusesUnknown?: boolean;
  /**
   * Request fields that a provider with {@link refusesUnknown} accepts beside {@link ChatSettings}, messages and tools: names at the top
   * level (`logit_bias`, `store`), or dotted paths (`stream_options.include_obfuscation`).
   */
  readonly members?: readonly string[];
  /** Ranges of settings that are narrower than those of the format, by names in `ChatSettings`. Values outside are clamped and reported. */
  readonly ranges?: Readonly<Record<string, { readonly min?: number; readonly max?: number }>>;
  /**
   * Name of the field with reasoning in responses of chat completions. Clients always get `reasoning_content`. Default:
   * `reasoning_content`.
   */
  readonly reasoningField?: 'reasoning_content' | 'reasoning';
  /**
   * Finish reasons of the provider that are not in its format, with the format's reason for each: `{ eos: 'stop' }`. Null for a value that
   * does not end the response: `{ '': null }`.
   */
  readonly finishReasons?: Readonly<Record<string, string | null>>;
  /** True if turns of the user and of the assistant must alternate. Adjacent turns of one role are then joined. */
  readonly alternates?: boolean;
  /**
   * False if an assistant turn can have only one tool call. A turn with several is then sent as several turns with one call and its result
   * each.
   */
  readonly parallelHistory?: boolean;
  /**
   * False if the provider refuses lists of parts that have only texts. Such lists are then joined to one text. Only in chat completions.
   */
  readonly textParts?: false;
  /** False if the provider does not store responses (Responses API). Earlier turns are then sent as input, and `store` is omitted. */
  readonly keepsResponses?: false;
  /** False if the model does not support system messages in the middle of the history. */
  readonly midSystem?: boolean;
  /**
   * True if earlier reasoning text must be sent back with tool calls: DeepSeek's `reasoning_content`, or a `thinking` block in the messages
   * format.
   */
  readonly replaysReasoning?: boolean;
  /** True if the model can stream the arguments of tool calls on request: generateContent on Vertex AI, from Gemini 3 on. */
  readonly streamsArguments?: boolean;
  /** True if `<think>` at the beginning of a response marks reasoning. */
  readonly inlineThinking?: boolean;
  /**
   * True if the history may end with an assistant turn, which the model continues. In chat completions, that turn is sent with `prefix:
   * true`, because providers that support this require it.
   */
  readonly prefill?: boolean;
  /** Maximum length of a tool name, in characters. */
  readonly toolNameLimit?: number;
  /** Output formats of transcripts that the model supports. Default: all formats. */
  readonly transcripts?: readonly string[];
  /** False if the model returns speech only as the bytes of a file, not as events. */
  readonly streamsSpeech?: boolean;
  /** Maximum number of texts in one embeddings request, if it is lower than that of the channel. Longer lists are split. */
  readonly mostInputs?: number;
  /** Maximum number of tokens of an input image. Budgets reserve it. Default: 16,384. */
  readonly imageTokens?: number;
  /** Traits of image generation. */
  readonly images?: ImageTraits;
  /** Maximum context in tokens, for model lists. */
  readonly inputLimit?: number;
}

/** Subset of JSON Schema that a model supports. */
export interface SchemaSubset {
  /** True if every object must have `additionalProperties: false`. */
  readonly closesObjects?: boolean;
  /** True if every property of an object must be required. Optional properties become nullable. */
  readonly requiresAll?: boolean;
  /** True if every object with properties must require at least one. If none is required, the first one becomes required. */
  readonly requiresOne?: boolean;
  /** Keywords that the model refuses, such as `minimum`. Their constraints move to the `description`. */
  readonly refuses?: readonly string[];
  /** Values of `format` that the model supports. Others move to the `description`. Default: all values. */
  readonly formats?: readonly string[];
  /** Parts of regular expressions that the model refuses, such as `^`. A `pattern` with one of them moves to the `description`. */
  readonly refusedInPatterns?: readonly string[];
  /** Maximum `minItems` that the model supports. Higher values move to the `description`. */
  readonly highestMinItems?: number;
}

/** Limits of an image model that are narrower than those of its format, and differences in its responses. */
export interface ImageTraits {
  /** Form of returned images, if it cannot be chosen. */
  readonly delivers?: 'url' | 'base64';
  /** False if the model does not support streaming. */
  readonly streams?: boolean;
  /** Maximum length of a prompt, in characters. */
  readonly promptLength?: number;
  /** Maximum number of images in one request. */
  readonly most?: number;
  readonly sizes?: readonly string[];
  /** Supported qualities. Empty if the model has no such setting. The same holds for `styles`. */
  readonly qualities?: readonly string[];
  readonly styles?: readonly string[];
  /** Requirements for an image to edit: one square file of this type, smaller than `below` bytes. Its mask must have the same size. */
  readonly source?: { readonly mimeType: string; readonly below: number };
  /** Maximum image size that can be requested in generateContent. Default: `1K`. */
  readonly largest?: '1K' | '2K' | '4K';
  /** True if the model is called by `:predict` in generateContent. */
  readonly predicts?: boolean;
}

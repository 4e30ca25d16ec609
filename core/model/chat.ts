/** Requests for chat in neutral form: messages, blocks, tools and settings. */
import type { Extra, Proof } from './extra.ts';
import type { JsonObject, JsonValue } from './json.ts';
import type { Reasoning } from './reasoning.ts';

/** Source of an image, audio, a video or a document. */
export type Source =
  | { readonly kind: 'data'; readonly data: string; readonly mimeType: string }
  | { readonly kind: 'url'; readonly url: string; readonly mimeType?: string }
  /** Id of a file stored by one vendor. `format` names the format of the id. Not portable to other formats. */
  | { readonly kind: 'file'; readonly id: string; readonly format: string; readonly mimeType?: string };

/** Members that every part of a request can have. */
interface Piece {
  readonly extra?: Extra;
  /** Path in the client's request (`messages[2].content[0]`), for errors and dropped fields. Never sent. */
  readonly at?: string;
  /** The prompt may be cached up to and including this piece. `ttl` is `5m` or `1h`; empty means the provider's default. */
  readonly cache?: { readonly ttl?: string };
}

/** Plain text. */
export interface TextBlock extends Piece {
  readonly type: 'text';
  readonly text: string;
  readonly citations?: readonly Citation[];
  /** Only generateContent puts a proof on text. */
  readonly proof?: Proof;
}

/** The model's own words for declining. */
export interface RefusalBlock extends Piece {
  readonly type: 'refusal';
  readonly text: string;
}

/**
 * An image, a sound, a video or a document.
 *
 * @example
 * const images = content.filter(({ type }) => type === 'image').length;
 */
export interface MediaBlock extends Piece {
  readonly type: 'image' | 'audio' | 'video' | 'file';
  readonly source: Source;
  /** File name or title. */
  readonly name?: string;
  /** `low`, `high`, `auto`, `original`. */
  readonly detail?: string;
}

/**
 * Reasoning of the model, with the proof that must come back unchanged.
 *
 * @example
 * const thoughts: ReasoningBlock = { type: 'reasoning', text: 'The client asks for a sum.' };
 */
export interface ReasoningBlock extends Piece {
  readonly type: 'reasoning';
  /** Empty when the provider hides it (`proof.kind` is then `encrypted`, or the text was omitted). */
  readonly text: string;
  readonly proof?: Proof;
}

/**
 * A tool call of the model.
 *
 * @example
 * const called: ToolCallBlock = { type: 'tool-call', id: 'call_1', name: 'weather', input: '{"city":"Oslo"}' };
 */
export interface ToolCallBlock extends Piece {
  readonly type: 'tool-call';
  readonly id: string;
  readonly name: string;
  /** The JSON text that the model wrote; free text when `custom`. Empty means no arguments. */
  readonly input: string;
  readonly custom?: boolean;
  /** Only generateContent puts a proof on a call. */
  readonly proof?: Proof;
}

/**
 * The result of a tool call.
 *
 * @example
 * const result: ToolResultBlock = { type: 'tool-result', id: 'call_1', content: [{ type: 'text', text: '4 °C' }] };
 */
export interface ToolResultBlock extends Piece {
  readonly type: 'tool-result';
  /** The id of the call that it answers. */
  readonly id: string;
  /** Name of the tool, if the format has it. */
  readonly name?: string;
  readonly content: readonly Block[];
  readonly failed?: boolean;
  /** The content was written as one string. */
  readonly plain?: boolean;
  readonly custom?: boolean;
}

/** A part that only one format knows, verbatim. */
export interface OpaqueBlock extends Piece {
  readonly type: 'opaque';
  readonly format: string;
  readonly value: JsonObject;
  /** The conversation can be understood without it (a hosted tool's record of its work): other formats leave it out and report it, where they would refuse another. */
  readonly spare?: boolean;
}

/**
 * One piece of a message, in order.
 *
 * @example
 * const texts = message.content.flatMap((block) => (block.type === 'text' ? [block.text] : []));
 */
export type Block =
  | TextBlock
  | RefusalBlock
  | MediaBlock
  | ReasoningBlock
  | ToolCallBlock
  | ToolResultBlock
  | OpaqueBlock;

/**
 * One turn. Tool results stand in `user` messages, or in `tool` messages where the format has such a role; encoders accept both.
 * A `system` message here is one that stands in the middle of the history; leading ones are in `ChatRequest.system`.
 *
 * @example
 * const hint: Message = { role: 'system', content: [{ type: 'text', text: 'Be brief.' }], plain: true };
 */
export interface Message extends Piece {
  readonly role: 'system' | 'user' | 'assistant' | 'tool';
  readonly content: readonly Block[];
  /** The content was one string on the wire; encoders that have both forms keep it. */
  readonly plain?: boolean;
}

/**
 * Something the model may use: a function of the client, or a service of the provider.
 *
 * @example
 * const names = chatOf(call).tools.flatMap((tool) => (tool.type === 'function' ? [tool.name] : []));
 */
export type Tool =
  | (Piece & {
      readonly type: 'function';
      readonly name: string;
      readonly description?: string;
      /** JSON Schema of the arguments; absent when the client gave none. */
      readonly schema?: JsonObject;
      readonly strict?: boolean;
    })
  /** Takes free text. `format` is the grammar in the chat-completions spelling (`{type, grammar: {syntax, definition}}`). */
  | (Piece & {
      readonly type: 'custom';
      readonly name: string;
      readonly description?: string;
      readonly format?: JsonObject;
    })
  /** The provider's own web search; details ride in `extra`. */
  | (Piece & { readonly type: 'web-search'; readonly name?: string })
  /** The provider's own code sandbox. */
  | (Piece & { readonly type: 'code-execution'; readonly name?: string })
  /** A tool that only one format knows. Another format refuses it by `name`. */
  | (Piece & {
      readonly type: 'opaque';
      readonly name: string;
      readonly format: string;
      readonly value: JsonObject;
    });

/**
 * Requirement to use a tool, or a certain tool.
 *
 * @example
 * const isForced = chatOf(call).toolChoice?.type === 'tool';
 */
export type ToolChoice =
  | { readonly type: 'auto' | 'none' | 'required' }
  | { readonly type: 'tool'; readonly name: string }
  /** Only these tools. `mode`: if one must be called. */
  | { readonly type: 'allowed'; readonly mode: 'auto' | 'required'; readonly names: readonly string[] };

/** The shape the answer must have. `schema` is a JSON Schema, given with `json-schema` only. */
export interface ResponseFormat {
  readonly type: 'text' | 'json' | 'json-schema';
  readonly name?: string;
  readonly description?: string;
  readonly schema?: JsonObject;
  readonly strict?: boolean;
}

/**
 * The settings that more than one format knows. Absent means not given: nothing is invented.
 *
 * @example
 * return next(call.with({ settings: { temperature: 0, stop: ['END'] } }));
 */
export interface ChatSettings {
  readonly maxOutput?: number;
  readonly temperature?: number;
  readonly topP?: number;
  readonly topK?: number;
  readonly stop?: readonly string[];
  /** Number of answers (`n`, `candidateCount`). */
  readonly choices?: number;
  readonly seed?: number;
  readonly frequencyPenalty?: number;
  readonly presencePenalty?: number;
  readonly logprobs?: boolean;
  readonly topLogprobs?: number;
  readonly responseFormat?: ResponseFormat;
  readonly verbosity?: string;
  readonly reasoning?: Reasoning;
  readonly parallelTools?: boolean;
  /** The end user's identifier. */
  readonly user?: string;
  readonly metadata?: JsonObject;
  readonly serviceTier?: string;
  /** `text`, `image`, `audio`, `video`, lower case. */
  readonly modalities?: readonly string[];
  readonly promptCacheKey?: string;
}

/**
 * A chat request in no vendor's words. Decoders make it, encoders read it, plugins edit it through `call.with`.
 *
 * @example
 * const asksForTools = chatOf(call).tools.length > 0;
 */
export interface ChatRequest {
  readonly operation: 'chat' | 'count-tokens';
  /** The format that the client wrote; all `at` paths are in its terms. */
  readonly format: string;
  readonly model: string;
  readonly stream: boolean;
  /** Instructions before the first turn, one entry for each system message the client wrote. */
  readonly system: readonly Message[];
  readonly messages: readonly Message[];
  readonly tools: readonly Tool[];
  readonly toolChoice?: ToolChoice;
  readonly settings: ChatSettings;
  /** Fields of the top level that only one format knows. */
  readonly extra?: Extra;
}

/**
 * A source that the model quoted. Offsets count characters of the block's text.
 *
 * @example
 * const citation: Citation = { url: 'https://example.com', title: 'Example', quote: 'quoted words' };
 */
export interface Citation {
  readonly url?: string;
  readonly title?: string;
  readonly quote?: string;
  readonly start?: number;
  readonly end?: number;
  readonly extra?: Extra;
}

/**
 * Log probability of one token (natural logarithm).
 *
 * @example
 * const sure = ({ logprob }: Logprob): boolean => Math.exp(logprob) > 0.9;
 */
export interface Logprob {
  readonly token: string;
  readonly logprob: number;
  readonly bytes?: JsonValue;
  readonly top?: readonly Logprob[];
}

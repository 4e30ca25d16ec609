import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { ChatFormatName } from './sdks.ts';

/** Input of a chat, independent of the SDK. */
export interface ChatInput {
  readonly model: string;
  readonly text: string;
  readonly system?: string;
  /** Earlier turns, oldest first. */
  readonly history?: readonly { readonly role: 'user' | 'assistant'; readonly text: string }[];
  /** A PNG, base64. */
  readonly image?: string;
  readonly maxTokens?: number;
  readonly stop?: readonly string[];
  readonly thinking?: boolean;
}

/** Result of a chat, independent of the SDK. */
export interface ChatResult {
  readonly text: string;
  readonly thinking: string;
  readonly model: string;
  /** Stop reason in the client's format. */
  readonly stop: string | null | undefined;
  readonly tokens: Tokens;
  /** Number of pieces of the text; 1 when it was not streamed. */
  readonly pieces: number;
}

export interface Tokens {
  /** Tokens of the whole prompt. */
  readonly input: number;
  /** Tokens of the reply, including reasoning. */
  readonly output: number;
  readonly reasoning: number;
  readonly cacheRead: number;
}

export interface ToolSpec {
  readonly name: string;
  readonly description: string;
  readonly schema: {
    readonly type: 'object';
    readonly properties: Record<string, { type: 'string'; description?: string; enum?: string[] }>;
    readonly required: string[];
  };
  /** Result of the tool. */
  readonly result: string;
}

/** How a client changes the model's reasoning before it sends it back. */
export type Spoil = 'proof' | 'words' | 'forget';

export interface LoopOptions {
  readonly tools: readonly ToolSpec[];
  readonly stream: boolean;
  /** Changes the reasoning that the client sends back: its proof or its text is altered, or all of it is dropped. */
  readonly spoil?: Spoil;
}

export interface Loop {
  /** The calls of the first answer. */
  readonly calls: readonly {
    readonly id: string | undefined;
    readonly name: string;
    readonly input: unknown;
  }[];
  /** Why the first answer stopped. */
  readonly stop: ChatResult['stop'];
  readonly thinking: string;
  readonly final: ChatResult;
}

/** An official SDK, used the way its documentation shows. */
export interface Client {
  readonly format: ChatFormatName;
  /** Stop reasons for: finished, output limit, tool calls. */
  readonly words: { readonly done: string; readonly length: string; readonly tools: string };
  whole(input: ChatInput): Promise<ChatResult>;
  /** Through the SDK's stream helper. */
  stream(input: ChatInput): Promise<ChatResult>;
  /** Calls, results, final answer, with the history kept by hand. */
  loop(input: ChatInput, options: LoopOptions): Promise<Loop>;
  /** Runs the same conversation with the SDK's tool runner. */
  runner(input: ChatInput, tools: readonly ToolSpec[]): Promise<string>;
  /** An answer that satisfies `citySchema`, parsed by the SDK where it does that. */
  structured(input: ChatInput): Promise<unknown>;
}

/** The schema of structured answers: nesting, a choice, a list, limits. */
export const citySchema = z.object({
  city: z.string(),
  population: z.number().int(),
  climate: z.enum(['dry', 'wet']),
  districts: z.array(z.object({ name: z.string(), central: z.boolean() })),
});

/** Alters a proof so that its provider must refuse it. */
export function spoiled(proof: string): string {
  const decoded = Buffer.from(proof, 'base64').toString();
  if (decoded.startsWith('gw1.')) return Buffer.from(spoiled(decoded)).toString('base64');
  if (!proof.startsWith('gw1.')) return flipped(proof);
  // Alters only the provider's proof inside the gateway's container, which stays valid.
  const inner = JSON.parse(Buffer.from(proof.slice(4), 'base64url').toString()) as { v: string };
  return `gw1.${Buffer.from(JSON.stringify({ ...inner, v: flipped(inner.v) })).toString('base64url')}`;
}

function flipped(text: string): string {
  return (text.startsWith('A') ? 'B' : 'A') + text.slice(1);
}

/** The demo's description of a base64 attachment. */
export function described(kind: string, mimeType: string, base64: string): string {
  const bytes = Buffer.from(base64, 'base64');
  const digest = createHash('sha256').update(bytes).digest('hex').slice(0, 8);
  return `${kind} (${mimeType}, ${bytes.length} bytes, sha256 ${digest})`;
}

/** Returns a client's result of a tool call. */
export function resultOf(tools: readonly ToolSpec[], name: string): string {
  const tool = tools.find((one) => one.name === name);
  if (tool === undefined) throw new Error(`The model called "${name}", which was not offered.`);
  return tool.result;
}

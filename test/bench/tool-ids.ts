/** Ids of tool calls as providers make them. */
import type { Random } from './texts.ts';

const lower = 'abcdefghijklmnopqrstuvwxyz';
const digits = '0123456789';
const base36 = digits + lower;
const base62 = base36 + lower.toUpperCase();
/** Base 62 without the characters that look alike. */
const base58 = [...base62].filter((character) => !'0OIl'.includes(character)).join('');

function characters(random: Random, alphabet: string, length: number): string {
  return Array.from({ length }, () => alphabet[Math.floor(random() * alphabet.length)]).join('');
}

/** Makes the id of the call with this number in its session, counted from 0. */
type IdMaker = (random: Random, name: string, count: number) => string;

/** The ids by style. */
export const idStyles = {
  /** 24 characters of base 36: each has a digit. The simplest ids, with which the others are compared. */
  simple: (random) => `call_${characters(random, base36, 24)}`,
  /** 24 characters of base 62, of which 1.5 % hold no digit. */
  openai: (random) => `call_${characters(random, base62, 24)}`,
  /** As in the documentation of tool use: `toolu_01D7FLrfh4GYq7yT1ULFeyMV`. */
  anthropic: (random) => `toolu_01${characters(random, base58, 22)}`,
  /** The endpoint of Gemini that is compatible with OpenAI's: `function-call-` and a number. */
  gemini: (random) => `function-call-${1 + Math.floor(random() * 9)}${characters(random, digits, 18)}`,
  /** A generateContent client need not give any. */
  none: () => '',
  /** They count over the session. vLLM, `make_tool_call_id` with the type `kimi_k2`. */
  kimi: (_random, name, count) => `functions.${name}:${count}`,
  /** Nine letters and digits; Mistral's API refuses any other. */
  mistral: (random) => characters(random, base62, 9),
  /** vLLM, `make_tool_call_id` with the type `random`: 64 bits in hexadecimal. */
  vllm: (random) => `chatcmpl-tool-${characters(random, '0123456789abcdef', 16)}`,
  /** Ollama, `toolCallId` in openai/openai.go: eight letters and digits. */
  ollama: (random) => `call_${characters(random, base36, 8)}`,
  /** `call_00_J2Eka8o9Z3lauAEj51BG8113`: the place of the call among those of its turn, and 24 characters. */
  deepseek: (random) => `call_00_${characters(random, base62, 24)}`,
} satisfies Readonly<Record<string, IdMaker>> as Readonly<Record<IdStyle, IdMaker>>;

/** A style of ids. */
export type IdStyle =
  | 'simple'
  | 'openai'
  | 'anthropic'
  | 'gemini'
  | 'none'
  | 'kimi'
  | 'mistral'
  | 'vllm'
  | 'ollama'
  | 'deepseek';

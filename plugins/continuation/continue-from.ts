/** Builds the request that continues a response which broke off, and estimates the usage of the part before. */
import {
  chatOf,
  countTokens,
  estimateTokens,
  formatFor,
  type Call,
  type Message,
  type Target,
  type Usage,
} from 'sluice';
import type { Parts } from './parts.ts';

/** Returns the request with the beginning of its response as the last message, and with the output limit reduced by that. */
export function continueFrom(call: Call, target: Target, text: string): Call {
  if (text === '') return call;
  const { messages, settings } = chatOf(call);
  const { maxOutput } = settings;
  return call.with({
    // In chat completions the last message must be marked as a beginning (`prefix`).
    messages: withBeginning(messages, text, formatFor(call, target) === 'chat-completions'),
    ...(maxOutput === undefined
      ? {}
      : { settings: { maxOutput: Math.max(1, maxOutput - estimateTokens(Buffer.byteLength(text))) } }),
  });
}

/** Appends the beginning of the response, to the client's own beginning where the request has one. */
function withBeginning(messages: readonly Message[], beginning: string, marked: boolean): readonly Message[] {
  const block = { type: 'text', text: beginning } as const;
  const last = messages.at(-1);
  const turn: Message =
    last?.role === 'assistant'
      ? { role: 'assistant', content: [...last.content, block] }
      : { role: 'assistant', content: [block], plain: true };
  const message = marked ? { ...turn, extra: { 'chat-completions': { prefix: true } } } : turn;
  return [...(last?.role === 'assistant' ? messages.slice(0, -1) : messages), message];
}

/** Returns the usage of the part that broke off: what the provider reported, and an estimate of the text since. */
export async function usedBy(call: Call, { usage, words }: Parts): Promise<Usage> {
  const output = estimateTokens(words);
  if (usage !== undefined) return { ...usage, output: usage.output + output, estimated: true };
  const input = await countTokens(chatOf(call));
  return { input, output, cacheRead: 0, cacheWrite: 0, reasoning: 0, estimated: true };
}

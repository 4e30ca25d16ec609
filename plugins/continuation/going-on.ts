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

/** The same request with the beginning of its answer as its last turn, and with as much less to say. */
export function goingOn(call: Call, target: Target, said: string): Call {
  if (said === '') return call;
  const { messages, settings } = chatOf(call);
  const { maxOutput } = settings;
  return call.with({
    // Providers of chat completions must be told that the last turn is a beginning.
    messages: withBeginning(messages, said, formatFor(call, target) === 'chat-completions'),
    ...(maxOutput === undefined
      ? {}
      : { settings: { maxOutput: Math.max(1, maxOutput - estimateTokens(Buffer.byteLength(said))) } }),
  });
}

/** A client may have begun the answer itself. */
function withBeginning(messages: readonly Message[], said: string, marked: boolean): readonly Message[] {
  const text = { type: 'text', text: said } as const;
  const last = messages.at(-1);
  const turn: Message =
    last?.role === 'assistant'
      ? { role: 'assistant', content: [...last.content, text] }
      : { role: 'assistant', content: [text], plain: true };
  const beginning = marked ? { ...turn, extra: { 'chat-completions': { prefix: true } } } : turn;
  return [...(last?.role === 'assistant' ? messages.slice(0, -1) : messages), beginning];
}

/** What the broken part has used, as far as it was told; what was said since is estimated. */
export async function usedBy(call: Call, { usage, words }: Parts): Promise<Usage> {
  const output = estimateTokens(words);
  if (usage !== undefined) return { ...usage, output: usage.output + output, estimated: true };
  const input = await countTokens(chatOf(call));
  return { input, output, cacheRead: 0, cacheWrite: 0, reasoning: 0, estimated: true };
}

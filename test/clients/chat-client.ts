import type OpenAI from 'openai';
import { zodResponseFormat } from 'openai/helpers/zod';
import {
  citySchema,
  resultOf,
  spoiled,
  type ChatInput,
  type Client,
  type ChatResult,
  type Spoil,
  type ToolSpec,
} from './conversation.ts';

type ChatMessage = OpenAI.Chat.Completions.ChatCompletionMessageParam;

/** Reasoning fields that providers of this dialect add, and clients send back. */
interface ChatReasoning {
  reasoning_content?: string | null;
  reasoning_details?: ChatDetail[];
}
interface ChatDetail {
  type: string;
  index?: number;
  text?: string;
  signature?: string | null;
  data?: string;
  [other: string]: unknown;
}

const settings = (input: ChatInput) => ({
  model: input.model,
  ...(input.maxTokens === undefined ? {} : { max_completion_tokens: input.maxTokens }),
  ...(input.stop === undefined ? {} : { stop: [...input.stop] }),
  ...(input.thinking ? { reasoning_effort: 'high' as const } : {}),
});
const messages = (input: ChatInput): ChatMessage[] => [
  ...(input.system === undefined ? [] : [{ role: 'system' as const, content: input.system }]),
  ...(input.history ?? []).map(({ role, text }): ChatMessage => ({ role, content: text })),
  {
    role: 'user',
    content:
      input.image === undefined
        ? input.text
        : [
            { type: 'text', text: input.text },
            { type: 'image_url', image_url: { url: `data:image/png;base64,${input.image}` } },
          ],
  },
];
const toResult = (
  completion: OpenAI.Chat.Completions.ChatCompletion,
  thinking: string,
  pieces: number,
): ChatResult => {
  const [choice] = completion.choices;
  const { usage } = completion;
  return {
    text: choice?.message.content ?? '',
    thinking,
    model: completion.model,
    stop: choice?.finish_reason,
    pieces,
    tokens: {
      input: usage?.prompt_tokens ?? Number.NaN,
      output: usage?.completion_tokens ?? Number.NaN,
      reasoning: usage?.completion_tokens_details?.reasoning_tokens ?? 0,
      cacheRead: usage?.prompt_tokens_details?.cached_tokens ?? 0,
    },
  };
};
const functionTools = (tools: readonly ToolSpec[]) =>
  tools.map(({ name, description, schema }) => ({
    type: 'function' as const,
    function: { name, description, parameters: { ...schema } },
  }));

/** The `openai` SDK: create, the stream helper, runTools, parse. */
export function chatClient(client: OpenAI): Client {
  /** One answer; the message as a client that keeps everything would send it back. */
  const runTurn = async (
    body: ReturnType<typeof settings> & { messages: ChatMessage[]; tools?: ReturnType<typeof functionTools> },
    stream: boolean,
  ): Promise<{
    result: ChatResult;
    message: OpenAI.Chat.Completions.ChatCompletionMessage & ChatReasoning;
  }> => {
    if (!stream) {
      const completion = await client.chat.completions.create(body);
      const message = completion.choices[0]?.message as OpenAI.Chat.Completions.ChatCompletionMessage &
        ChatReasoning;
      return { result: toResult(completion, message.reasoning_content ?? '', 1), message };
    }
    const running = client.chat.completions.stream({ ...body, stream_options: { include_usage: true } });
    let pieces = 0;
    let thinking = '';
    const details: ChatDetail[] = [];
    running.on('content', () => {
      pieces += 1;
    });
    running.on('chunk', (chunk) => {
      const delta = chunk.choices[0]?.delta as ChatReasoning | undefined;
      thinking += delta?.reasoning_content ?? '';
      for (const detail of delta?.reasoning_details ?? []) gather(details, detail);
    });
    const completion = await running.finalChatCompletion();
    const { role, content, tool_calls, refusal } = completion.choices[0]?.message ?? {
      role: 'assistant',
      content: null,
      refusal: null,
    };
    return {
      result: toResult(completion, thinking, pieces),
      message: {
        role,
        content,
        refusal,
        ...(tool_calls === undefined ? {} : { tool_calls }),
        ...(thinking === '' ? {} : { reasoning_content: thinking }),
        ...(details.length === 0 ? {} : { reasoning_details: details }),
      },
    };
  };

  return {
    format: 'chat-completions',
    words: { done: 'stop', length: 'length', tools: 'tool_calls' },
    whole: async (input) => (await runTurn({ ...settings(input), messages: messages(input) }, false)).result,
    stream: async (input) => (await runTurn({ ...settings(input), messages: messages(input) }, true)).result,
    async loop(chatInput, { tools, stream, spoil }) {
      const body = { ...settings(chatInput), messages: messages(chatInput), tools: functionTools(tools) };
      const first = await runTurn(body, stream);
      const calls = (first.message.tool_calls ?? []).filter((call) => call.type === 'function');
      const results = calls.map(({ id, function: { name } }): ChatMessage => ({
        role: 'tool',
        tool_call_id: id,
        content: resultOf(tools, name),
      }));
      const kept = spoil === undefined ? first.message : spoilChat(first.message, spoil);
      const last = await runTurn(
        { ...body, messages: [...body.messages, kept as ChatMessage, ...results] },
        stream,
      );
      return {
        calls: calls.map(({ id, function: { name, arguments: input } }) => ({
          id,
          name,
          input: JSON.parse(input) as unknown,
        })),
        stop: first.result.stop,
        thinking: first.result.thinking,
        final: last.result,
      };
    },
    async runner(input, tools) {
      const runner = client.chat.completions.runTools({
        ...settings(input),
        messages: messages(input),
        tools: tools.map(({ name, description, schema, result }) => ({
          type: 'function' as const,
          function: { name, description, parameters: { ...schema }, function: () => result },
        })),
      });
      return (await runner.finalContent()) ?? '';
    },
    async structured(input) {
      const completion = await client.chat.completions.parse({
        ...settings(input),
        messages: messages(input),
        response_format: zodResponseFormat(citySchema, 'city'),
      });
      return completion.choices[0]?.message.parsed;
    },
  };
}

/** Details of a stream belong together by index and type; their texts are pieces. */
function gather(details: ChatDetail[], piece: ChatDetail): void {
  const known = details.find(({ index, type }) => index === piece.index && type === piece.type);
  if (known === undefined) {
    details.push({ ...piece });
    return;
  }
  const text = (known.text ?? '') + (piece.text ?? '');
  const data = (known.data ?? '') + (piece.data ?? '');
  Object.assign(
    known,
    piece,
    known.text === undefined && piece.text === undefined ? {} : { text },
    data === '' ? {} : { data },
  );
}

function spoilChat<M extends ChatReasoning>(message: M, what: Spoil): M {
  if (what === 'forget') {
    const { reasoning_content: _content, reasoning_details: _details, ...kept } = message;
    return kept as M;
  }
  const reasoning_details = structuredClone(message.reasoning_details ?? []);
  for (const detail of reasoning_details) {
    if (what === 'words' && detail.text !== undefined) detail.text += '!';
    if (what === 'proof' && detail.signature) detail.signature = spoiled(detail.signature);
    if (what === 'proof' && detail.data !== undefined) detail.data = spoiled(detail.data);
  }
  return {
    ...message,
    ...(message.reasoning_details === undefined ? {} : { reasoning_details }),
    ...(what === 'words' && message.reasoning_content
      ? { reasoning_content: `${message.reasoning_content}!` }
      : {}),
  };
}

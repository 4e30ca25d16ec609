import type Anthropic from '@anthropic-ai/sdk';
import { zodOutputFormat } from '@anthropic-ai/sdk/helpers/zod';
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

/** Part of the client that is used here; clients of clouds have only this part. */
interface MessagesClient {
  readonly messages: Pick<Anthropic['messages'], 'create' | 'stream' | 'parse'>;
  readonly beta: { readonly messages: Pick<Anthropic['beta']['messages'], 'toolRunner'> };
}

const messages = (input: ChatInput): Anthropic.MessageParam[] => [
  ...(input.history ?? []).map(({ role, text }) => ({ role, content: text })),
  {
    role: 'user',
    content:
      input.image === undefined
        ? input.text
        : [
            { type: 'image', source: { type: 'base64', media_type: 'image/png', data: input.image } },
            { type: 'text', text: input.text },
          ],
  },
];
const toolParams = (tools: readonly ToolSpec[]): Anthropic.Tool[] =>
  tools.map(({ name, description, schema }) => ({ name, description, input_schema: { ...schema } }));
const toResult = (message: Anthropic.Message, pieces: number): ChatResult => {
  const { usage } = message;
  const cacheRead = usage.cache_read_input_tokens ?? 0;
  return {
    text: message.content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join(''),
    thinking: message.content
      .flatMap((block) => (block.type === 'thinking' ? [block.thinking] : []))
      .join(''),
    model: message.model,
    stop: message.stop_reason,
    pieces,
    tokens: {
      input: usage.input_tokens + cacheRead + (usage.cache_creation_input_tokens ?? 0),
      output: usage.output_tokens,
      reasoning: usage.output_tokens_details?.thinking_tokens ?? 0,
      cacheRead,
    },
  };
};

/** The `@anthropic-ai/sdk`: create, the stream helper, the tool runner, parse. `how` says in which words it asks for thinking. */
export function messagesClient(client: MessagesClient, how: 'adaptive' | 'budget'): Client {
  const settings = (input: ChatInput) => ({
    model: input.model,
    max_tokens: input.maxTokens ?? 8000,
    ...(input.system === undefined ? {} : { system: input.system }),
    ...(input.stop === undefined ? {} : { stop_sequences: [...input.stop] }),
    ...(input.thinking && how === 'adaptive'
      ? {
          thinking: { type: 'adaptive' as const, display: 'summarized' as const },
          output_config: { effort: 'high' as const },
        }
      : {}),
    ...(input.thinking && how === 'budget'
      ? { thinking: { type: 'enabled' as const, budget_tokens: 2048 } }
      : {}),
  });
  const runTurn = async (
    body: Anthropic.MessageCreateParamsNonStreaming,
    stream: boolean,
  ): Promise<{ result: ChatResult; message: Anthropic.Message }> => {
    if (!stream) {
      const message = await client.messages.create(body);
      return { result: toResult(message, 1), message };
    }
    const running = client.messages.stream(body);
    let pieces = 0;
    running.on('text', () => {
      pieces += 1;
    });
    const message = await running.finalMessage();
    return { result: toResult(message, pieces), message };
  };
  return {
    format: 'messages',
    words: { done: 'end_turn', length: 'max_tokens', tools: 'tool_use' },
    whole: async (input) => (await runTurn({ ...settings(input), messages: messages(input) }, false)).result,
    stream: async (input) => (await runTurn({ ...settings(input), messages: messages(input) }, true)).result,
    async loop(chatInput, { tools, stream, spoil }) {
      const body = { ...settings(chatInput), messages: messages(chatInput), tools: toolParams(tools) };
      const first = await runTurn(body, stream);
      const calls = first.message.content.filter((block) => block.type === 'tool_use');
      const content =
        spoil === undefined
          ? first.message.content
          : first.message.content.flatMap((block) => spoilBlock(block, spoil));
      const last = await runTurn(
        {
          ...body,
          messages: [
            ...body.messages,
            { role: 'assistant', content },
            {
              role: 'user',
              content: calls.map(({ id, name }) => ({
                type: 'tool_result',
                tool_use_id: id,
                content: resultOf(tools, name),
              })),
            },
          ],
        },
        stream,
      );
      return {
        calls: calls.map(({ id, name, input }) => ({ id, name, input })),
        stop: first.result.stop,
        thinking: first.result.thinking,
        final: last.result,
      };
    },
    async runner(chatInput, tools) {
      const message = await client.beta.messages.toolRunner({
        model: chatInput.model,
        max_tokens: 1024,
        messages: [{ role: 'user', content: chatInput.text }],
        tools: tools.map(({ name, description, schema, result }) => ({
          name,
          description,
          input_schema: { ...schema },
          parse: (input: unknown) => input,
          run: () => result,
        })),
      });
      return message.content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('');
    },
    async structured(input) {
      const message = await client.messages.parse({
        ...settings(input),
        messages: messages(input),
        output_config: { format: zodOutputFormat(citySchema) },
      });
      return message.parsed_output;
    },
  };
}

function spoilBlock(block: Anthropic.ContentBlock, what: Spoil): Anthropic.ContentBlock[] {
  if (block.type !== 'thinking' && block.type !== 'redacted_thinking') return [block];
  if (what === 'forget') return [];
  if (block.type === 'redacted_thinking')
    return [what === 'proof' ? { ...block, data: spoiled(block.data) } : block];
  return [
    what === 'proof'
      ? { ...block, signature: spoiled(block.signature) }
      : { ...block, thinking: `${block.thinking}!` },
  ];
}

import { Agent, OpenAIProvider, Runner, tool } from '@openai/agents';
import type OpenAI from 'openai';
import { zodTextFormat } from 'openai/helpers/zod';
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

type Input = OpenAI.Responses.ResponseInputItem;
type Output = OpenAI.Responses.ResponseOutputItem;
type Create = OpenAI.Responses.ResponseCreateParamsNonStreaming;

const settings = (input: ChatInput) => ({
  model: input.model,
  ...(input.system === undefined ? {} : { instructions: input.system }),
  ...(input.maxTokens === undefined ? {} : { max_output_tokens: input.maxTokens }),
  ...(input.thinking ? { reasoning: { effort: 'high' as const, summary: 'auto' as const } } : {}),
});
const inputItems = (input: ChatInput): Input[] => [
  ...(input.history ?? []).map(({ role, text }): Input => ({ role, content: text })),
  {
    role: 'user',
    content:
      input.image === undefined
        ? input.text
        : [
            { type: 'input_text', text: input.text },
            { type: 'input_image', detail: 'auto', image_url: `data:image/png;base64,${input.image}` },
          ],
  },
];
const thinkingOf = (output: readonly Output[]): string =>
  output
    .flatMap((item) => (item.type === 'reasoning' ? [...item.summary, ...(item.content ?? [])] : []))
    .map(({ text }) => text)
    .join('');
const toResult = (response: OpenAI.Responses.Response, pieces: number): ChatResult => ({
  text: response.output_text,
  thinking: thinkingOf(response.output),
  model: response.model,
  stop: response.incomplete_details?.reason ?? response.status,
  pieces,
  tokens: {
    input: response.usage?.input_tokens ?? Number.NaN,
    output: response.usage?.output_tokens ?? Number.NaN,
    reasoning: response.usage?.output_tokens_details.reasoning_tokens ?? 0,
    cacheRead: response.usage?.input_tokens_details.cached_tokens ?? 0,
  },
});
const functionTools = (tools: readonly ToolSpec[]) =>
  tools.map(({ name, description, schema }) => ({
    type: 'function' as const,
    name,
    description,
    parameters: { ...schema },
    strict: false,
  }));

/**
 * The Responses calls of the `openai` SDK: create, the stream helper, parse; and the Agents SDK as its tool runner. `how` says who keeps the
 * history: the client sends every item back and asks for nothing to be stored, or names the previous response and sends new items alone.
 */
export function responsesClient(client: OpenAI, how: 'items' | 'stored'): Client {
  const runTurn = async (
    body: Create,
    stream: boolean,
  ): Promise<{ result: ChatResult; response: OpenAI.Responses.Response }> => {
    const kept: Create =
      how === 'stored' ? body : { ...body, store: false, include: ['reasoning.encrypted_content'] };
    if (!stream) {
      const response = await client.responses.create(kept);
      return { result: toResult(response, 1), response };
    }
    const running = client.responses.stream({ ...kept, stream: true });
    let pieces = 0;
    running.on('response.output_text.delta', () => {
      pieces += 1;
    });
    const response = await running.finalResponse();
    return { result: toResult(response, pieces), response };
  };

  return {
    format: 'responses',
    words: { done: 'completed', length: 'max_output_tokens', tools: 'completed' },
    whole: async (chatInput) =>
      (await runTurn({ ...settings(chatInput), input: inputItems(chatInput) }, false)).result,
    stream: async (chatInput) =>
      (await runTurn({ ...settings(chatInput), input: inputItems(chatInput) }, true)).result,
    async loop(input, { tools, stream, spoil }) {
      const items = inputItems(input);
      const body: Create = { ...settings(input), tools: functionTools(tools) };
      const first = await runTurn({ ...body, input: items }, stream);
      const calls = first.response.output.filter((item) => item.type === 'function_call');
      const results = calls.map(({ call_id, name }): Input => ({
        type: 'function_call_output',
        call_id,
        output: resultOf(tools, name),
      }));
      const output = first.response.output.flatMap((item) =>
        spoil === undefined ? [sendable(item)] : spoilItem(sendable(item), spoil),
      );
      const last = await runTurn(
        how === 'stored'
          ? { ...body, previous_response_id: first.response.id, input: results }
          : { ...body, input: [...items, ...output, ...results] },
        stream,
      );
      return {
        calls: calls.map(({ call_id: id, name, arguments: written }) => ({
          id,
          name,
          input: JSON.parse(written) as unknown,
        })),
        stop: first.result.stop,
        thinking: first.result.thinking,
        final: last.result,
      };
    },
    async runner(input, tools) {
      const agent = new Agent({
        name: 'tester',
        model: input.model,
        modelSettings: { store: how === 'stored' },
        tools: tools.map(({ name, description, schema, result }) =>
          tool({
            name,
            description,
            parameters: { ...schema, additionalProperties: false },
            strict: true,
            execute: () => result,
          }),
        ),
      });
      const runner = new Runner({
        modelProvider: new OpenAIProvider({ openAIClient: client, useResponses: true }),
        tracingDisabled: true,
      });
      const result = await runner.run(agent, input.text);
      return result.finalOutput ?? '';
    },
    async structured(input) {
      const response = await client.responses.parse({
        ...settings(input),
        input: inputItems(input),
        text: { format: zodTextFormat(citySchema, 'city') },
      });
      return response.output_parsed;
    },
  };
}

/** An output item as the next request's input: the SDK's own additions are left out. */
function sendable(item: Output): Input {
  const { parsed_arguments: _parsed, ...wire } = item as Output & { parsed_arguments?: unknown };
  return wire as Input;
}

function spoilItem(item: Input, what: Spoil): Input[] {
  if (item.type !== 'reasoning') return [item];
  if (what === 'forget') return [];
  if (what === 'proof')
    return [item.encrypted_content ? { ...item, encrypted_content: spoiled(item.encrypted_content) } : item];
  return [
    {
      ...item,
      summary: item.summary.map((part) => ({ ...part, text: `${part.text}!` })),
      ...(item.content === undefined
        ? {}
        : { content: item.content.map((part) => ({ ...part, text: `${part.text}!` })) }),
    },
  ];
}

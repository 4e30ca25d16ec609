import {
  BedrockRuntimeClient,
  ConverseCommand,
  ConverseStreamCommand,
  type ContentBlock,
  type ConverseCommandInput,
  type Message,
  type TokenUsage,
  type Tool,
} from '@aws-sdk/client-bedrock-runtime';
import { NodeHttpHandler } from '@smithy/node-http-handler';
import {
  citySchema,
  resultOf,
  spoiled,
  type ChatInput,
  type Client,
  type ChatResult,
  type ToolSpec,
} from './conversation.ts';
import { z } from 'zod';
import type { Access } from './sdks.ts';

/**
 * The SDK with a key as its bearer token, or as the access key id of ordinary credentials. Over plain HTTP it has to be told to speak
 * HTTP/1.1; behind TLS both sides agree on that by themselves.
 */
export function bedrock({ url, key }: Access, how: 'bearer' | 'signed' = 'bearer'): BedrockRuntimeClient {
  return new BedrockRuntimeClient({
    endpoint: url,
    region: 'us-east-1',
    maxAttempts: 1,
    requestHandler: new NodeHttpHandler(),
    ...(how === 'bearer'
      ? { token: { token: key }, authSchemePreference: ['httpBearerAuth'] }
      : { credentials: { accessKeyId: key, secretAccessKey: 'anything' } }),
  });
}

type Schema = NonNullable<NonNullable<NonNullable<Tool['toolSpec']>['inputSchema']>['json']>;
type Fields = ConverseCommandInput['additionalModelRequestFields'];

interface Answer {
  readonly content: ContentBlock[];
  readonly stop: string | undefined;
  readonly usage: TokenUsage | undefined;
  readonly pieces: number;
}

/** `@aws-sdk/client-bedrock-runtime`: Converse and ConverseStream. A reply of this format names no model. */
export function converseClient(client: BedrockRuntimeClient): Client {
  const answerTo = async (input: ConverseCommandInput, stream: boolean): Promise<Answer> => {
    try {
      return stream ? await streamed(client, input) : await whole(client, input);
    } catch (error) {
      const { $metadata: metadata } = error as { $metadata?: { httpStatusCode?: number } };
      throw Object.assign(error as Error, { status: metadata?.httpStatusCode });
    }
  };
  const send = async (input: ChatInput, stream: boolean): Promise<ChatResult> =>
    toResult(input, await answerTo({ ...settings(input), messages: turns(input) }, stream));
  const loop: Client['loop'] = async (chatInput, { tools, stream, spoil }) => {
    const toolConfig = { tools: tools.map(declared) };
    const input = { ...settings(chatInput), toolConfig };
    const first = await answerTo({ ...input, messages: turns(chatInput) }, stream);
    const calls = first.content.flatMap(({ toolUse }) => (toolUse === undefined ? [] : [toolUse]));
    const kept =
      spoil === undefined ? first.content : first.content.flatMap((block) => spoilBlock(block, spoil));
    const results = calls.map(({ toolUseId, name = '' }) => ({
      toolResult: { toolUseId, content: [{ text: resultOf(tools, name) }] },
    }));
    const messages: Message[] = [
      ...turns(chatInput),
      { role: 'assistant', content: kept },
      { role: 'user', content: results },
    ];
    const last = await answerTo({ ...input, messages }, stream);
    return {
      calls: calls.map(({ toolUseId, name = '', input: args }) => ({ id: toolUseId, name, input: args })),
      stop: first.stop,
      thinking: toResult(chatInput, first).thinking,
      final: toResult(chatInput, last),
    };
  };
  return {
    format: 'converse',
    words: { done: 'end_turn', length: 'max_tokens', tools: 'tool_use' },
    whole: (input) => send(input, false),
    stream: (input) => send(input, true),
    loop,
    /** The SDK has none: as its documentation shows, until no tool is wanted any more. */
    async runner(chatInput, tools) {
      const input = { ...settings(chatInput), toolConfig: { tools: tools.map(declared) } };
      const messages = turns(chatInput);
      for (let round = 0; round < 5; round += 1) {
        // oxlint-disable-next-line no-await-in-loop -- one turn follows the other
        const { content, stop } = await answerTo({ ...input, messages }, false);
        if (stop !== 'tool_use') return textOf(content);
        const results = content.flatMap(({ toolUse }) =>
          toolUse === undefined
            ? []
            : [
                {
                  toolResult: {
                    toolUseId: toolUse.toolUseId,
                    content: [{ text: resultOf(tools, toolUse.name ?? '') }],
                  },
                },
              ],
        );
        messages.push({ role: 'assistant', content }, { role: 'user', content: results });
      }
      throw new Error('The loop does not end.');
    },
    async structured(input) {
      const schema = JSON.stringify(z.toJSONSchema(citySchema));
      const { content } = await answerTo(
        {
          ...settings(input),
          messages: turns(input),
          outputConfig: {
            textFormat: { type: 'json_schema', structure: { jsonSchema: { schema, name: 'city' } } },
          },
        },
        false,
      );
      return JSON.parse(textOf(content)) as unknown;
    },
  };
}

function turns(input: ChatInput): Message[] {
  return [
    ...(input.history ?? []).map(({ role, text }) => ({ role, content: [{ text }] })),
    {
      role: 'user',
      content: [
        { text: input.text },
        ...(input.image === undefined
          ? []
          : [{ image: { format: 'png' as const, source: { bytes: Buffer.from(input.image, 'base64') } } }]),
      ],
    },
  ];
}

function settings(input: ChatInput): Omit<ConverseCommandInput, 'messages'> {
  const thinking = { type: 'enabled', budget_tokens: 2048 };
  return {
    modelId: input.model,
    ...(input.system === undefined ? {} : { system: [{ text: input.system }] }),
    inferenceConfig: {
      ...(input.maxTokens === undefined ? {} : { maxTokens: input.maxTokens }),
      ...(input.stop === undefined ? {} : { stopSequences: [...input.stop] }),
    },
    ...(input.thinking === true ? { additionalModelRequestFields: { thinking } as Fields } : {}),
  };
}

function declared({ name, description, schema }: ToolSpec): Tool {
  return { toolSpec: { name, description, inputSchema: { json: schema as unknown as Schema } } };
}

async function whole(client: BedrockRuntimeClient, input: ConverseCommandInput): Promise<Answer> {
  const { output, stopReason, usage } = await client.send(new ConverseCommand(input));
  return { content: output?.message?.content ?? [], stop: stopReason, usage, pieces: 1 };
}

/** Puts the events of a stream together: the SDK leaves that to its users. */
async function streamed(client: BedrockRuntimeClient, input: ConverseCommandInput): Promise<Answer> {
  const { stream } = await client.send(new ConverseStreamCommand(input));
  const blocks: Partial<Record<string, unknown>>[] = [];
  const inputs = new Map<number, string>();
  let stop: string | undefined;
  let usage: TokenUsage | undefined;
  let pieces = 0;
  for await (const event of stream ?? []) {
    if (event.contentBlockStart !== undefined) {
      const { contentBlockIndex: index = 0, start } = event.contentBlockStart;
      blocks[index] = { toolUse: { ...start?.toolUse } };
      inputs.set(index, '');
    } else if (event.contentBlockDelta !== undefined) {
      const { contentBlockIndex: index = 0, delta } = event.contentBlockDelta;
      const block = (blocks[index] ??= {});
      if (delta?.text) {
        block.text = `${(block.text as string | undefined) ?? ''}${delta.text}`;
        pieces += 1;
      }
      if (delta?.toolUse !== undefined)
        inputs.set(index, (inputs.get(index) ?? '') + (delta.toolUse.input ?? ''));
      if (delta?.reasoningContent !== undefined) {
        const { text = '', signature } = delta.reasoningContent;
        const before = (block.reasoningContent as { reasoningText?: { text: string } } | undefined)
          ?.reasoningText;
        block.reasoningContent = {
          reasoningText: {
            ...before,
            text: (before?.text ?? '') + text,
            ...(signature === undefined ? {} : { signature }),
          },
        };
      }
    }
    stop = event.messageStop?.stopReason ?? stop;
    usage = event.metadata?.usage ?? usage;
  }
  for (const [index, text] of inputs) {
    const call = blocks[index]?.toolUse as Record<string, unknown>;
    call.input = JSON.parse(text === '' ? '{}' : text) as unknown;
  }
  return { content: blocks as unknown as ContentBlock[], stop, usage, pieces };
}

function textOf(content: readonly ContentBlock[]): string {
  return content.map(({ text }) => text ?? '').join('');
}

function toResult(input: ChatInput, { content, stop, usage, pieces }: Answer): ChatResult {
  const {
    inputTokens = 0,
    outputTokens = 0,
    cacheReadInputTokens = 0,
    cacheWriteInputTokens = 0,
  } = usage ?? {};
  return {
    text: textOf(content),
    thinking: content.map(({ reasoningContent }) => reasoningContent?.reasoningText?.text ?? '').join(''),
    model: input.model,
    stop,
    pieces,
    tokens: {
      input: inputTokens + cacheReadInputTokens + cacheWriteInputTokens,
      output: outputTokens,
      reasoning: 0,
      cacheRead: cacheReadInputTokens,
    },
  };
}

function spoilBlock(block: ContentBlock, spoil: 'proof' | 'words' | 'forget'): ContentBlock[] {
  const thought = block.reasoningContent?.reasoningText;
  if (thought === undefined) return [block];
  if (spoil === 'forget') return [];
  const { text = '', signature } = thought;
  const changed =
    spoil === 'words'
      ? { text: `${text}?`, signature }
      : { text, signature: signature === undefined ? undefined : spoiled(signature) };
  return [{ reasoningContent: { reasoningText: changed } }];
}

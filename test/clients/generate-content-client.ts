import type {
  Content,
  GenerateContentConfig,
  GenerateContentResponse,
  GoogleGenAI,
  Part,
} from '@google/genai';
import { z } from 'zod';
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

const contents = (input: ChatInput): Content[] => [
  ...(input.history ?? []).map(({ role, text }) => ({
    role: role === 'user' ? 'user' : 'model',
    parts: [{ text }],
  })),
  {
    role: 'user',
    parts: [
      { text: input.text },
      ...(input.image === undefined ? [] : [{ inlineData: { mimeType: 'image/png', data: input.image } }]),
    ],
  },
];
const toResult = (parts: readonly Part[], last: GenerateContentResponse, pieces: number): ChatResult => {
  const usage = last.usageMetadata;
  const reasoning = usage?.thoughtsTokenCount ?? 0;
  const text = (thought: boolean): string =>
    parts
      .flatMap((part) => (part.text !== undefined && (part.thought ?? false) === thought ? [part.text] : []))
      .join('');
  return {
    text: text(false),
    thinking: text(true),
    model: last.modelVersion ?? '',
    stop: last.candidates?.[0]?.finishReason,
    pieces,
    tokens: {
      input: usage?.promptTokenCount ?? Number.NaN,
      output: (usage?.candidatesTokenCount ?? 0) + reasoning,
      reasoning,
      cacheRead: usage?.cachedContentTokenCount ?? 0,
    },
  };
};
const declared = (tools: readonly ToolSpec[]) => [
  {
    functionDeclarations: tools.map(({ name, description, schema }) => ({
      name,
      description,
      parametersJsonSchema: schema,
    })),
  },
];

/** The `@google/genai` SDK: generateContent, generateContentStream, automatic function calling. `how` says in which words it asks for thinking. */
export function generateContentClient(client: GoogleGenAI, how: 'level' | 'budget'): Client {
  const config = (input: ChatInput): GenerateContentConfig => ({
    ...(input.system === undefined ? {} : { systemInstruction: input.system }),
    ...(input.maxTokens === undefined ? {} : { maxOutputTokens: input.maxTokens }),
    ...(input.stop === undefined ? {} : { stopSequences: [...input.stop] }),
    ...(input.thinking
      ? {
          thinkingConfig: {
            includeThoughts: true,
            ...(how === 'level'
              ? {
                  thinkingLevel: 'HIGH' as NonNullable<
                    GenerateContentConfig['thinkingConfig']
                  >['thinkingLevel'] &
                    string,
                }
              : { thinkingBudget: 2048 }),
          },
        }
      : {}),
  });
  const runTurn = async (
    model: string,
    history: Content[],
    chosen: GenerateContentConfig,
    stream: boolean,
  ): Promise<{ result: ChatResult; parts: Part[] }> => {
    const request = { model, contents: history, config: chosen };
    if (!stream) {
      const response = await client.models.generateContent(request);
      const parts = response.candidates?.[0]?.content?.parts ?? [];
      return { result: toResult(parts, response, 1), parts };
    }
    const parts: Part[] = [];
    let last: GenerateContentResponse | undefined;
    let pieces = 0;
    for await (const chunk of await client.models.generateContentStream(request)) {
      const more = chunk.candidates?.[0]?.content?.parts ?? [];
      parts.push(...more);
      if (more.some(({ text, thought }) => text && !thought)) pieces += 1;
      last = chunk;
    }
    if (last === undefined) throw new Error('The stream gave no chunk.');
    return { result: toResult(parts, last, pieces), parts };
  };
  return {
    format: 'generate-content',
    words: { done: 'STOP', length: 'MAX_TOKENS', tools: 'STOP' },
    whole: async (input) => (await runTurn(input.model, contents(input), config(input), false)).result,
    stream: async (input) => (await runTurn(input.model, contents(input), config(input), true)).result,
    async loop(input, { tools, stream, spoil }) {
      const chosen = { ...config(input), tools: declared(tools) };
      const history = contents(input);
      const first = await runTurn(input.model, history, chosen, stream);
      const calls = first.parts.flatMap(({ functionCall }) =>
        functionCall === undefined ? [] : [functionCall],
      );
      const kept = spoil === undefined ? first.parts : first.parts.flatMap((part) => spoilPart(part, spoil));
      const results: Part[] = calls.map(({ id, name = '' }) => ({
        functionResponse: {
          ...(id === undefined ? {} : { id }),
          name,
          response: { output: resultOf(tools, name) },
        },
      }));
      const last = await runTurn(
        input.model,
        [...history, { role: 'model', parts: kept }, { role: 'user', parts: results }],
        chosen,
        stream,
      );
      return {
        calls: calls.map(({ id, name = '', args }) => ({ id, name, input: args })),
        stop: first.result.stop,
        thinking: first.result.thinking,
        final: last.result,
      };
    },
    async runner(input, tools) {
      const response = await client.models.generateContent({
        model: input.model,
        contents: contents(input),
        config: {
          ...config(input),
          tools: [
            {
              tool: () => Promise.resolve(declared(tools)[0] ?? {}),
              callTool: (calls) =>
                Promise.resolve(
                  calls.map(({ id, name = '' }) => ({
                    functionResponse: {
                      ...(id === undefined ? {} : { id }),
                      name,
                      response: { output: resultOf(tools, name) },
                    },
                  })),
                ),
            },
          ],
        },
      });
      return response.text ?? '';
    },
    async structured(input) {
      const response = await client.models.generateContent({
        model: input.model,
        contents: contents(input),
        config: {
          ...config(input),
          responseMimeType: 'application/json',
          responseJsonSchema: z.toJSONSchema(citySchema),
        },
      });
      return JSON.parse(response.text ?? '') as unknown;
    },
  };
}

function spoilPart(part: Part, what: Spoil): Part[] {
  const { thoughtSignature, ...rest } = part;
  if (what === 'forget') return part.thought ? [] : [rest];
  if (what === 'proof')
    return [thoughtSignature === undefined ? part : { ...part, thoughtSignature: spoiled(thoughtSignature) }];
  return [part.thought && part.text ? { ...part, text: `${part.text}!` } : part];
}

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
  type Ask,
  type Client,
  type Said,
  type Spoil,
  type ToolSpec,
} from './conversation.ts';

const contents = (ask: Ask): Content[] => [
  ...(ask.history ?? []).map(({ role, text }) => ({
    role: role === 'user' ? 'user' : 'model',
    parts: [{ text }],
  })),
  {
    role: 'user',
    parts: [
      { text: ask.text },
      ...(ask.image === undefined ? [] : [{ inlineData: { mimeType: 'image/png', data: ask.image } }]),
    ],
  },
];
const said = (parts: readonly Part[], last: GenerateContentResponse, pieces: number): Said => {
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
  const config = (ask: Ask): GenerateContentConfig => ({
    ...(ask.system === undefined ? {} : { systemInstruction: ask.system }),
    ...(ask.maxTokens === undefined ? {} : { maxOutputTokens: ask.maxTokens }),
    ...(ask.stop === undefined ? {} : { stopSequences: [...ask.stop] }),
    ...(ask.thinking
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
  const turn = async (
    model: string,
    asked: Content[],
    chosen: GenerateContentConfig,
    stream: boolean,
  ): Promise<{ said: Said; parts: Part[] }> => {
    const request = { model, contents: asked, config: chosen };
    if (!stream) {
      const response = await client.models.generateContent(request);
      const parts = response.candidates?.[0]?.content?.parts ?? [];
      return { said: said(parts, response, 1), parts };
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
    return { said: said(parts, last, pieces), parts };
  };
  return {
    format: 'generate-content',
    words: { done: 'STOP', length: 'MAX_TOKENS', tools: 'STOP' },
    whole: async (ask) => (await turn(ask.model, contents(ask), config(ask), false)).said,
    stream: async (ask) => (await turn(ask.model, contents(ask), config(ask), true)).said,
    async loop(ask, { tools, stream, spoil }) {
      const chosen = { ...config(ask), tools: declared(tools) };
      const asked = contents(ask);
      const first = await turn(ask.model, asked, chosen, stream);
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
      const last = await turn(
        ask.model,
        [...asked, { role: 'model', parts: kept }, { role: 'user', parts: results }],
        chosen,
        stream,
      );
      return {
        calls: calls.map(({ id, name = '', args }) => ({ id, name, input: args })),
        stop: first.said.stop,
        thinking: first.said.thinking,
        final: last.said,
      };
    },
    async runner(ask, tools) {
      const response = await client.models.generateContent({
        model: ask.model,
        contents: contents(ask),
        config: {
          ...config(ask),
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
    async structured(ask) {
      const response = await client.models.generateContent({
        model: ask.model,
        contents: contents(ask),
        config: {
          ...config(ask),
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

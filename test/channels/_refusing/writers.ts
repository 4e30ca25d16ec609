import type { Json } from './checks.ts';

/** Formats of the clients. */
export const clients = ['chat-completions', 'responses', 'messages', 'generate-content', 'converse'] as const;
export type Client = (typeof clients)[number];

/** Content of an ordinary request, in no particular format. */
export interface Wanted {
  readonly system?: string;
  /** Turns: what the user and the assistant said in turn, calls of tools, and what these gave. */
  readonly turns?: readonly Turn[];
  readonly most?: number;
  readonly temperature?: number;
  readonly topP?: number;
  readonly topK?: number;
  readonly stop?: string;
  readonly seed?: number;
  readonly penalties?: true;
  readonly tools?: true;
  readonly choice?: 'any' | 'weather';
  readonly schema?: true;
  readonly json?: true;
  readonly effort?: 'high' | 'none';
  readonly cached?: true;
  readonly stream?: true;
  /** Fields that only clients of one format send. */
  readonly more?: Partial<Record<Client, Json>>;
}

/** A turn of a history. */
export type Turn =
  | { readonly user: string; readonly image?: true }
  | { readonly assistant: string }
  | { readonly calls: readonly string[] }
  | { readonly gave: readonly string[] };

const parameters = {
  type: 'object',
  properties: {
    city: { type: 'string', description: 'A city' },
    days: { type: 'integer', minimum: 1, maximum: 10 },
  },
  required: ['city'],
};
/** As the SDK of OpenAI makes one for strict answers. */
const strictSchema = {
  type: 'object',
  properties: { city: { type: 'string' }, people: { type: 'integer', minimum: 0 } },
  required: ['city', 'people'],
  additionalProperties: false,
};
/** As the SDK of Anthropic makes one: its constraints have moved to the description. */
const claudeSchema = {
  type: 'object',
  properties: { city: { type: 'string' }, people: { type: 'integer', description: '{minimum: 0}' } },
  required: ['city'],
  additionalProperties: false,
};
/** As Google's SDK has one. */
const openSchema = {
  type: 'object',
  properties: { city: { type: 'string', minLength: 1 }, people: { type: 'integer', minimum: 0 } },
  required: ['city'],
};
const png =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const hello: readonly Turn[] = [{ user: 'Hello' }];
const callId = (city: string): string => `call_${city.toLowerCase()}_0123456789`;

const given = (members: Json): Json =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
const when = (condition: unknown, members: Json): Json =>
  condition === undefined || condition === false ? {} : members;

function chat({ system, turns = hello, ...wanted }: Wanted): Json {
  const mark = wanted.cached === true ? { cache_control: { type: 'ephemeral' } } : {};
  const messages = turns.flatMap((turn): readonly Json[] => {
    if ('user' in turn)
      return [
        {
          role: 'user',
          content:
            turn.image === true
              ? [
                  { type: 'text', text: turn.user },
                  { type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } },
                ]
              : turn.user,
        },
      ];
    if ('assistant' in turn) return [{ role: 'assistant', content: turn.assistant }];
    if ('calls' in turn)
      return [
        {
          role: 'assistant',
          content: null,
          tool_calls: turn.calls.map((city) => ({
            id: callId(city),
            type: 'function',
            function: { name: 'weather', arguments: JSON.stringify({ city }) },
          })),
        },
      ];
    return turn.gave.map((city) => ({ role: 'tool', tool_call_id: callId(city), content: 'Rain.' }));
  });
  return given({
    messages: [
      ...(system === undefined
        ? []
        : [
            {
              role: 'system',
              content: wanted.cached === true ? [{ type: 'text', text: system, ...mark }] : system,
            },
          ]),
      ...messages,
    ],
    stream: wanted.stream,
    max_completion_tokens: wanted.most,
    temperature: wanted.temperature,
    top_p: wanted.topP,
    stop: wanted.stop,
    seed: wanted.seed,
    reasoning_effort: wanted.effort,
    ...when(wanted.penalties, { presence_penalty: 0.5, frequency_penalty: 0.5 }),
    ...when(wanted.tools, {
      tools: [
        { type: 'function', function: { name: 'weather', description: 'The weather in a city', parameters } },
      ],
    }),
    ...when(wanted.choice, {
      tool_choice: wanted.choice === 'any' ? 'required' : { type: 'function', function: { name: 'weather' } },
    }),
    ...when(wanted.schema, {
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'answer', strict: true, schema: strictSchema },
      },
    }),
    ...when(wanted.json, { response_format: { type: 'json_object' } }),
  });
}

function responses({ system, turns = hello, ...wanted }: Wanted): Json {
  const input = turns.flatMap((turn): readonly Json[] => {
    if ('user' in turn)
      return [
        {
          role: 'user',
          content: [
            { type: 'input_text', text: turn.user },
            ...(turn.image === true
              ? [{ type: 'input_image', image_url: `data:image/png;base64,${png}` }]
              : []),
          ],
        },
      ];
    if ('assistant' in turn)
      return [
        {
          type: 'message',
          role: 'assistant',
          content: [{ type: 'output_text', text: turn.assistant, annotations: [] }],
        },
      ];
    if ('calls' in turn)
      return turn.calls.map((city) => ({
        type: 'function_call',
        call_id: callId(city),
        name: 'weather',
        arguments: JSON.stringify({ city }),
      }));
    return turn.gave.map((city) => ({
      type: 'function_call_output',
      call_id: callId(city),
      output: 'Rain.',
    }));
  });
  return given({
    input,
    instructions: system,
    stream: wanted.stream,
    max_output_tokens: wanted.most,
    temperature: wanted.temperature,
    top_p: wanted.topP,
    ...when(wanted.effort, { reasoning: { effort: wanted.effort } }),
    ...when(wanted.tools, {
      tools: [
        {
          type: 'function',
          name: 'weather',
          description: 'The weather in a city',
          parameters,
          strict: false,
        },
      ],
    }),
    ...when(wanted.choice, {
      tool_choice: wanted.choice === 'any' ? 'required' : { type: 'function', name: 'weather' },
    }),
    ...when(wanted.schema, {
      text: { format: { type: 'json_schema', name: 'answer', strict: true, schema: strictSchema } },
    }),
    ...when(wanted.json, { text: { format: { type: 'json_object' } } }),
  });
}

function messagesOf({ system, turns = hello, ...wanted }: Wanted): Json {
  const mark = wanted.cached === true ? { cache_control: { type: 'ephemeral' } } : {};
  const messages = turns.map((turn): Json => {
    if ('user' in turn)
      return {
        role: 'user',
        content: [
          ...(turn.image === true
            ? [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } }]
            : []),
          { type: 'text', text: turn.user, ...mark },
        ],
      };
    if ('assistant' in turn) return { role: 'assistant', content: turn.assistant };
    if ('calls' in turn)
      return {
        role: 'assistant',
        content: turn.calls.map((city) => ({
          type: 'tool_use',
          id: callId(city),
          name: 'weather',
          input: { city },
        })),
      };
    return {
      role: 'user',
      content: turn.gave.map((city) => ({
        type: 'tool_result',
        tool_use_id: callId(city),
        content: 'Rain.',
      })),
    };
  });
  return given({
    messages,
    max_tokens: wanted.most ?? 1024,
    ...when(system, { system: [{ type: 'text', text: system, ...mark }] }),
    stream: wanted.stream,
    // The highest that this format has.
    temperature: wanted.temperature === undefined ? undefined : Math.min(wanted.temperature, 1),
    top_p: wanted.topP,
    top_k: wanted.topK,
    ...when(wanted.stop, { stop_sequences: [wanted.stop] }),
    ...when(wanted.effort, {
      thinking: wanted.effort === 'none' ? { type: 'disabled' } : { type: 'enabled', budget_tokens: 6000 },
    }),
    ...when(wanted.tools, {
      tools: [{ name: 'weather', description: 'The weather in a city', input_schema: parameters, ...mark }],
    }),
    ...when(wanted.choice, {
      tool_choice: wanted.choice === 'any' ? { type: 'any' } : { type: 'tool', name: 'weather' },
    }),
    ...when(wanted.schema, { output_config: { format: { type: 'json_schema', schema: claudeSchema } } }),
  });
}

function generateContent({ system, turns = hello, ...wanted }: Wanted): Json {
  const contents = turns.map((turn): Json => {
    if ('user' in turn)
      return {
        role: 'user',
        parts: [
          { text: turn.user },
          ...(turn.image === true ? [{ inlineData: { mimeType: 'image/png', data: png } }] : []),
        ],
      };
    if ('assistant' in turn) return { role: 'model', parts: [{ text: turn.assistant }] };
    if ('calls' in turn)
      return {
        role: 'model',
        parts: turn.calls.map((city, index) => ({
          functionCall: { name: 'weather', args: { city } },
          ...(index === 0 ? { thoughtSignature: 'c2lnbmF0dXJl' } : {}),
        })),
      };
    return {
      role: 'user',
      parts: turn.gave.map(() => ({ functionResponse: { name: 'weather', response: { output: 'Rain.' } } })),
    };
  });
  const config = given({
    maxOutputTokens: wanted.most,
    temperature: wanted.temperature,
    topP: wanted.topP,
    topK: wanted.topK,
    seed: wanted.seed,
    ...when(wanted.stop, { stopSequences: [wanted.stop] }),
    ...when(wanted.penalties, { presencePenalty: 0.5, frequencyPenalty: 0.5 }),
    ...when(wanted.effort, { thinkingConfig: { thinkingBudget: wanted.effort === 'none' ? 0 : 6000 } }),
    ...when(wanted.schema, { responseMimeType: 'application/json', responseSchema: openSchema }),
    ...when(wanted.json, { responseMimeType: 'application/json' }),
  });
  return given({
    contents,
    ...when(system, { systemInstruction: { parts: [{ text: system }] } }),
    ...(Object.keys(config).length === 0 ? {} : { generationConfig: config }),
    ...when(wanted.tools, {
      tools: [
        { functionDeclarations: [{ name: 'weather', description: 'The weather in a city', parameters }] },
      ],
    }),
    ...when(wanted.choice, {
      toolConfig: {
        functionCallingConfig: {
          mode: 'ANY',
          ...(wanted.choice === 'any' ? {} : { allowedFunctionNames: ['weather'] }),
        },
      },
    }),
  });
}

function converse({ system, turns = hello, ...wanted }: Wanted): Json {
  const mark = wanted.cached === true ? [{ cachePoint: { type: 'default' } }] : [];
  const messages = turns.map((turn): Json => {
    if ('user' in turn)
      return {
        role: 'user',
        content: [
          { text: turn.user },
          ...(turn.image === true ? [{ image: { format: 'png', source: { bytes: png } } }] : []),
          ...mark,
        ],
      };
    if ('assistant' in turn) return { role: 'assistant', content: [{ text: turn.assistant }] };
    if ('calls' in turn)
      return {
        role: 'assistant',
        content: turn.calls.map((city) => ({
          toolUse: { toolUseId: callId(city), name: 'weather', input: { city } },
        })),
      };
    return {
      role: 'user',
      content: turn.gave.map((city) => ({
        toolResult: { toolUseId: callId(city), content: [{ text: 'Rain.' }] },
      })),
    };
  });
  const config = given({
    maxTokens: wanted.most,
    temperature: wanted.temperature === undefined ? undefined : Math.min(wanted.temperature, 1),
    topP: wanted.topP,
    ...when(wanted.stop, { stopSequences: [wanted.stop] }),
  });
  return given({
    messages,
    ...when(system, { system: [{ text: system }, ...mark] }),
    ...(Object.keys(config).length === 0 ? {} : { inferenceConfig: config }),
    ...when(wanted.effort, {
      additionalModelRequestFields: {
        thinking: wanted.effort === 'none' ? { type: 'disabled' } : { type: 'enabled', budget_tokens: 6000 },
      },
    }),
    ...when(wanted.tools, {
      toolConfig: {
        tools: [
          {
            toolSpec: {
              name: 'weather',
              description: 'The weather in a city',
              inputSchema: { json: parameters },
            },
          },
          ...mark,
        ],
        ...when(wanted.choice, {
          toolChoice: wanted.choice === 'any' ? { any: {} } : { tool: { name: 'weather' } },
        }),
      },
    }),
    ...when(wanted.schema, {
      outputConfig: {
        textFormat: {
          type: 'json_schema',
          structure: { jsonSchema: { name: 'answer', schema: JSON.stringify(openSchema) } },
        },
      },
    }),
  });
}

/** Writes a request in the words of each format. */
export const writers: Readonly<Record<Client, (wanted: Wanted) => Json>> = {
  'chat-completions': chat,
  responses,
  messages: messagesOf,
  'generate-content': generateContent,
  converse,
};

import type { FormatName } from './sdks.ts';

/** Members of a request. */
export type Fields = Record<string, unknown>;

const tool = {
  name: 'get_weather',
  description: 'The weather',
  schema: { type: 'object', properties: { city: { type: 'string' } } },
};
/** A tool of chat completions, with more members. */
export const chatTool = (more: Fields = {}): Fields => ({
  tools: [
    {
      type: 'function',
      function: { name: tool.name, description: tool.description, parameters: tool.schema, ...more },
    },
  ],
});
/** One of messages. */
export const messagesTool = (more: Fields = {}): Fields => ({
  tools: [{ name: tool.name, description: tool.description, input_schema: tool.schema, ...more }],
});
const generateTool = (more: Fields = {}): Fields => ({
  tools: [
    {
      functionDeclarations: [
        { name: tool.name, description: tool.description, parametersJsonSchema: tool.schema, ...more },
      ],
    },
  ],
});
/** One of responses. */
export const responsesTool = (more: Fields = {}): Fields => ({
  tools: [
    { type: 'function', name: tool.name, description: tool.description, parameters: tool.schema, ...more },
  ],
});
const citySchema = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
};
const png =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==';
/** A history of one turn. */
export const user = (content: unknown, more: Fields = {}): Fields => ({
  messages: [{ role: 'user', content, ...more }],
});
/** Settings of generateContent. */
export const config = (fields: Fields): Fields => ({ generationConfig: fields });

/** Fields of a request, and what of them the other format has no place for, in the client's own words. */
type Row = readonly [fields: Fields, lost: readonly string[]];

/** Settings of each client format, and the losses at channels of other formats. */
export const rows: readonly {
  readonly client: FormatName;
  readonly channel: FormatName;
  readonly rows: readonly Row[];
}[] = [
  {
    client: 'chat-completions',
    channel: 'messages',
    rows: [
      [{ max_completion_tokens: 100 }, []],
      [{ max_tokens: 100 }, []],
      [{ temperature: 0.5 }, []],
      [{ temperature: 1.7 }, ['temperature']],
      [{ top_p: 0.9 }, []],
      [{ stop: ['END', 'STOP'] }, []],
      [{ user: 'u-1' }, []],
      [{ n: 1 }, []],
      [{ seed: 7 }, ['seed']],
      [{ logit_bias: { '50256': -100 } }, ['logit_bias']],
      [{ presence_penalty: 0.5 }, ['presence_penalty']],
      [{ frequency_penalty: 0.5 }, ['frequency_penalty']],
      [{ logprobs: true, top_logprobs: 2 }, ['logprobs', 'top_logprobs']],
      [{ prediction: { type: 'content', content: 'x' } }, ['prediction']],
      [{ verbosity: 'low' }, ['verbosity']],
      [{ store: true }, ['store']],
      [{ metadata: { team: 'a' } }, ['metadata']],
      [{ prompt_cache_key: 'k' }, ['prompt_cache_key']],
      [{ service_tier: 'auto' }, []],
      [{ service_tier: 'flex' }, ['service_tier']],
      [{ x_future: 1 }, ['x_future']],
      [{ reasoning_effort: 'high' }, []],
      [{ reasoning_effort: 'none' }, []],
      [{ ...chatTool(), parallel_tool_calls: false }, []],
      [{ ...chatTool({ strict: true }), tool_choice: 'required' }, []],
      [{ ...chatTool(), tool_choice: { type: 'function', function: { name: tool.name } } }, []],
      [{ response_format: { type: 'text' } }, []],
      [{ response_format: { type: 'json_object' } }, ['response_format']],
      [
        {
          response_format: {
            type: 'json_schema',
            json_schema: { name: 'city', strict: true, schema: citySchema },
          },
        },
        ['response_format.json_schema.name', 'response_format.json_schema.strict'],
      ],
      [user('Hi', { name: 'ada' }), ['messages[0].name']],
      [
        user([{ type: 'image_url', image_url: { url: `data:image/png;base64,${png}`, detail: 'high' } }]),
        ['messages[0].content[0].image_url.detail'],
      ],
      [user([{ type: 'text', text: 'Hi', prompt_cache_breakpoint: { mode: 'explicit' } }]), []],
      [user([{ type: 'text', text: 'Hi', x_future: 1 }]), ['messages[0].content[0].x_future']],
    ],
  },
  {
    client: 'chat-completions',
    channel: 'generate-content',
    rows: [
      [{ temperature: 1.7, max_completion_tokens: 100, stop: 'END' }, []],
      [{ seed: 7 }, []],
      [{ presence_penalty: 0.5, frequency_penalty: 0.5 }, []],
      [{ n: 2 }, []],
      [{ logprobs: true, top_logprobs: 2 }, []],
      [{ logit_bias: { '50256': -100 } }, ['logit_bias']],
      [{ user: 'u-1' }, ['user']],
      [{ metadata: { team: 'a' } }, ['metadata']],
      [{ prediction: { type: 'content', content: 'x' } }, ['prediction']],
      [{ verbosity: 'low' }, ['verbosity']],
      [{ store: true }, ['store']],
      [{ prompt_cache_key: 'k' }, ['prompt_cache_key']],
      [{ service_tier: 'flex' }, []],
      [{ x_future: 1 }, ['x_future']],
      [{ reasoning_effort: 'high' }, []],
      [{ reasoning_effort: 'max' }, ['reasoning_effort']],
      [{ ...chatTool(), parallel_tool_calls: false }, ['parallel_tool_calls']],
      [{ ...chatTool({ strict: true }) }, ['tools[0].function.strict']],
      [{ ...chatTool(), tool_choice: 'required' }, []],
      [{ response_format: { type: 'json_object' } }, []],
      [
        {
          response_format: {
            type: 'json_schema',
            json_schema: { name: 'city', strict: true, schema: citySchema },
          },
        },
        ['response_format.json_schema.name', 'response_format.json_schema.strict'],
      ],
      [user('Hi', { name: 'ada' }), ['messages[0].name']],
      [
        user([{ type: 'text', text: 'Hi', prompt_cache_breakpoint: { mode: 'explicit' } }]),
        ['messages[0].content[0].prompt_cache_breakpoint'],
      ],
    ],
  },
  {
    client: 'messages',
    channel: 'chat-completions',
    rows: [
      [{ temperature: 0.5, stop_sequences: ['END'], system: 'Be brief.' }, []],
      [{ metadata: { user_id: 'u-1' } }, []],
      [{ service_tier: 'standard_only' }, []],
      [{ container: 'container_1' }, ['container']],
      [{ context_management: { edits: [] } }, ['context_management']],
      [{ inference_geo: 'eu' }, ['inference_geo']],
      [{ speed: 'fast' }, ['speed']],
      [{ cache_control: { type: 'ephemeral' } }, ['cache_control']],
      [{ x_future: 1 }, ['x_future']],
      [{ thinking: { type: 'disabled' } }, []],
      [{ thinking: { type: 'enabled', budget_tokens: 2048 } }, []],
      [{ thinking: { type: 'adaptive' }, output_config: { effort: 'high' } }, []],
      [
        { thinking: { type: 'adaptive', display: 'summarized' }, output_config: { effort: 'high' } },
        ['thinking.display'],
      ],
      [{ thinking: { type: 'between_tools' } }, ['thinking.type']],
      [{ output_config: { format: { type: 'json_schema', schema: citySchema } } }, []],
      [{ output_config: { task_budget: { type: 'tokens', total: 9000 } } }, ['output_config.task_budget']],
      [
        { ...messagesTool({ strict: true }), tool_choice: { type: 'any', disable_parallel_tool_use: true } },
        [],
      ],
      [messagesTool({ cache_control: { type: 'ephemeral' } }), ['tools[0].cache_control']],
      [messagesTool({ defer_loading: true }), ['tools[0].defer_loading']],
      [
        user([{ type: 'text', text: 'Hi', cache_control: { type: 'ephemeral' } }]),
        ['messages[0].content[0].cache_control'],
      ],
      [
        user([{ type: 'text', text: 'Hi', cache_control: { type: 'ephemeral', ttl: '1h' } }]),
        ['messages[0].content[0].cache_control'],
      ],
      [
        user([
          {
            type: 'document',
            source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0=' },
            title: 'a.pdf',
            citations: { enabled: true },
          },
        ]),
        ['messages[0].content[0].citations'],
      ],
      [
        {
          ...messagesTool(),
          messages: [
            { role: 'user', content: 'Hi' },
            { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: tool.name, input: {} }] },
            {
              role: 'user',
              content: [
                { type: 'tool_result', tool_use_id: 'toolu_1', content: 'no network', is_error: true },
              ],
            },
          ],
        },
        ['messages[2].content[0].is_error'],
      ],
    ],
  },
  {
    client: 'messages',
    channel: 'generate-content',
    rows: [
      [{ temperature: 0.5, top_k: 5, stop_sequences: ['END'], system: 'Be brief.' }, []],
      [{ metadata: { user_id: 'u-1' } }, ['metadata.user_id']],
      [{ service_tier: 'standard_only' }, []],
      [{ container: 'container_1' }, ['container']],
      [{ x_future: 1 }, ['x_future']],
      // Models with levels cannot stop thinking: the least there is stands in.
      [{ thinking: { type: 'disabled' } }, ['thinking']],
      [{ thinking: { type: 'enabled', budget_tokens: 2048 } }, []],
      [{ thinking: { type: 'adaptive', display: 'summarized' }, output_config: { effort: 'high' } }, []],
      [{ output_config: { effort: 'max' }, thinking: { type: 'adaptive' } }, ['output_config.effort']],
      [{ output_config: { format: { type: 'json_schema', schema: citySchema } } }, []],
      [
        { ...messagesTool(), tool_choice: { type: 'auto', disable_parallel_tool_use: true } },
        ['tool_choice.disable_parallel_tool_use'],
      ],
      [messagesTool({ strict: true }), ['tools[0].strict']],
      [messagesTool({ cache_control: { type: 'ephemeral' } }), ['tools[0].cache_control']],
      [
        user([{ type: 'text', text: 'Hi', cache_control: { type: 'ephemeral' } }]),
        ['messages[0].content[0].cache_control'],
      ],
      [
        { system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }] },
        ['system[0].cache_control'],
      ],
    ],
  },
  {
    client: 'generate-content',
    channel: 'messages',
    rows: [
      [config({ temperature: 0.5, topK: 5, maxOutputTokens: 100, stopSequences: ['END'] }), []],
      [config({ temperature: 1.7 }), ['generationConfig.temperature']],
      [config({ seed: 7 }), ['generationConfig.seed']],
      [config({ presencePenalty: 0.5 }), ['generationConfig.presencePenalty']],
      [config({ frequencyPenalty: 0.5 }), ['generationConfig.frequencyPenalty']],
      [
        config({ responseLogprobs: true, logprobs: 2 }),
        ['generationConfig.logprobs', 'generationConfig.responseLogprobs'],
      ],
      [config({ candidateCount: 1 }), []],
      [config({ mediaResolution: 'MEDIA_RESOLUTION_LOW' }), ['generationConfig.mediaResolution']],
      [config({ responseMimeType: 'text/plain' }), []],
      [config({ responseMimeType: 'application/json', responseJsonSchema: citySchema }), []],
      [config({ thinkingConfig: { includeThoughts: true, thinkingLevel: 'HIGH' } }), []],
      [config({ thinkingConfig: { thinkingBudget: 2048 } }), []],
      [config({ thinkingConfig: { thinkingBudget: 0 } }), []],
      [config({ xFuture: 1 }), ['generationConfig.xFuture']],
      [
        { safetySettings: [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_NONE' }] },
        ['safetySettings'],
      ],
      [{ labels: { team: 'a' } }, ['labels']],
      [{ serviceTier: 'flex' }, ['serviceTier']],
      [{ serviceTier: 'standard' }, []],
      [{ xFuture: 1 }, ['xFuture']],
      [{ systemInstruction: { parts: [{ text: 'Be brief.' }] } }, []],
      [{ ...generateTool(), toolConfig: { functionCallingConfig: { mode: 'ANY' } } }, []],
      [generateTool({ behavior: 'NON_BLOCKING' }), ['tools[0].functionDeclarations[0].behavior']],
    ],
  },
  {
    client: 'generate-content',
    channel: 'chat-completions',
    rows: [
      [config({ temperature: 1.7, maxOutputTokens: 100, stopSequences: ['END'] }), []],
      [config({ seed: 7, presencePenalty: 0.5, frequencyPenalty: 0.5, candidateCount: 2 }), []],
      [config({ responseLogprobs: true, logprobs: 2 }), []],
      [config({ mediaResolution: 'MEDIA_RESOLUTION_LOW' }), ['generationConfig.mediaResolution']],
      [config({ responseMimeType: 'application/json', responseJsonSchema: citySchema }), []],
      [config({ thinkingConfig: { thinkingLevel: 'HIGH' } }), []],
      [
        config({ thinkingConfig: { includeThoughts: true, thinkingLevel: 'HIGH' } }),
        ['generationConfig.thinkingConfig.includeThoughts'],
      ],
      [config({ thinkingConfig: { thinkingBudget: 2048 } }), []],
      [config({ responseModalities: ['TEXT'] }), []],
      [
        { safetySettings: [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_NONE' }] },
        ['safetySettings'],
      ],
      [{ labels: { team: 'a' } }, ['labels']],
      [{ serviceTier: 'flex' }, []],
      [{ xFuture: 1 }, ['xFuture']],
      [
        {
          ...generateTool(),
          toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: [tool.name] } },
        },
        [],
      ],
    ],
  },
  {
    client: 'responses',
    channel: 'chat-completions',
    rows: [
      [{ temperature: 1.7, top_p: 0.9, max_output_tokens: 100, instructions: 'Be brief.' }, []],
      [{ store: false }, []],
      [{ include: ['reasoning.encrypted_content'] }, []],
      [{ user: 'u-1', metadata: { team: 'a' }, service_tier: 'flex', prompt_cache_key: 'k' }, []],
      [{ max_tool_calls: 3 }, ['max_tool_calls']],
      [{ truncation: 'auto' }, ['truncation']],
      [{ x_future: 1 }, ['x_future']],
      [{ stream_options: { include_obfuscation: false } }, []],
      [{ reasoning: { effort: 'high' } }, []],
      [{ reasoning: { effort: 'high', context: 'all_turns' } }, ['reasoning.context']],
      [{ text: { verbosity: 'low' } }, []],
      [{ text: { format: { type: 'json_schema', name: 'city', strict: true, schema: citySchema } } }, []],
      [{ ...responsesTool({ strict: true }), tool_choice: 'required', parallel_tool_calls: false }, []],
      [responsesTool({ defer_loading: true }), ['tools[0].defer_loading']],
      [
        { input: [{ role: 'user', content: [{ type: 'input_text', text: 'Hi', x_future: 1 }] }] },
        ['input[0].content[0].x_future'],
      ],
    ],
  },
  {
    client: 'responses',
    channel: 'messages',
    rows: [
      [{ temperature: 0.5, max_output_tokens: 100, instructions: 'Be brief.' }, []],
      [{ temperature: 1.7 }, ['temperature']],
      [{ metadata: { team: 'a' } }, ['metadata']],
      [{ prompt_cache_key: 'k' }, ['prompt_cache_key']],
      [{ max_tool_calls: 3 }, ['max_tool_calls']],
      [{ truncation: 'auto' }, ['truncation']],
      [{ x_future: 1 }, ['x_future']],
      [{ reasoning: { effort: 'high', summary: 'auto' } }, []],
      [{ text: { verbosity: 'low' } }, ['text.verbosity']],
      [
        { text: { format: { type: 'json_schema', name: 'city', strict: true, schema: citySchema } } },
        ['text.format.name', 'text.format.strict'],
      ],
      [{ ...responsesTool({ strict: true }), tool_choice: 'required', parallel_tool_calls: false }, []],
    ],
  },
  {
    client: 'responses',
    channel: 'generate-content',
    rows: [
      [{ temperature: 1.7, max_output_tokens: 100, instructions: 'Be brief.' }, []],
      [{ metadata: { team: 'a' } }, ['metadata']],
      [{ prompt_cache_key: 'k' }, ['prompt_cache_key']],
      [{ user: 'u-1' }, ['user']],
      [{ max_tool_calls: 3 }, ['max_tool_calls']],
      [{ x_future: 1 }, ['x_future']],
      [{ reasoning: { effort: 'high' } }, []],
      [{ text: { verbosity: 'low' } }, ['text.verbosity']],
      [{ ...responsesTool({ strict: true }) }, ['tools[0].strict']],
      [{ ...responsesTool(), parallel_tool_calls: false }, ['parallel_tool_calls']],
    ],
  },
  {
    client: 'chat-completions',
    channel: 'responses',
    rows: [
      [{ max_completion_tokens: 100, temperature: 1.7, user: 'u-1', metadata: { team: 'a' } }, []],
      [{ max_completion_tokens: 9 }, ['max_completion_tokens']],
      [{ top_p: 0.9 }, []],
      [{ stop: ['END', 'STOP'] }, ['stop']],
      [{ n: 1 }, []],
      [{ seed: 7 }, ['seed']],
      [{ logit_bias: { '50256': -100 } }, ['logit_bias']],
      [{ presence_penalty: 0.5 }, ['presence_penalty']],
      [{ frequency_penalty: 0.5 }, ['frequency_penalty']],
      [{ logprobs: true, top_logprobs: 2 }, []],
      [{ prediction: { type: 'content', content: 'x' } }, ['prediction']],
      [{ verbosity: 'low' }, []],
      [{ prompt_cache_key: 'k', service_tier: 'flex' }, []],
      [{ x_future: 1 }, ['x_future']],
      [{ reasoning_effort: 'high' }, []],
      [{ ...chatTool({ strict: true }), tool_choice: 'required', parallel_tool_calls: false }, []],
      [
        {
          response_format: {
            type: 'json_schema',
            json_schema: { name: 'city', strict: true, schema: citySchema },
          },
        },
        [],
      ],
      [user('Hi', { name: 'ada' }), ['messages[0].name']],
    ],
  },
  {
    client: 'messages',
    channel: 'responses',
    rows: [
      [{ temperature: 0.5, system: 'Be brief.' }, []],
      [{ stop_sequences: ['END'] }, ['stop_sequences']],
      [{ top_k: 5 }, ['top_k']],
      [{ container: 'container_1' }, ['container']],
      [{ speed: 'fast' }, ['speed']],
      [{ x_future: 1 }, ['x_future']],
      [{ thinking: { type: 'adaptive', display: 'summarized' }, output_config: { effort: 'high' } }, []],
      [{ thinking: { type: 'enabled', budget_tokens: 2048 } }, []],
      [messagesTool({ cache_control: { type: 'ephemeral' } }), ['tools[0].cache_control']],
      [{ ...messagesTool({ strict: true }), tool_choice: { type: 'any' } }, []],
    ],
  },
  {
    client: 'generate-content',
    channel: 'responses',
    rows: [
      [config({ temperature: 1.7, maxOutputTokens: 100 }), []],
      [config({ stopSequences: ['END'] }), ['generationConfig.stopSequences']],
      [config({ seed: 7 }), ['generationConfig.seed']],
      [config({ topK: 5 }), ['generationConfig.topK']],
      [config({ presencePenalty: 0.5 }), ['generationConfig.presencePenalty']],
      [config({ responseMimeType: 'application/json', responseJsonSchema: citySchema }), []],
      [config({ thinkingConfig: { includeThoughts: true, thinkingLevel: 'HIGH' } }), []],
      [{ labels: { team: 'a' } }, ['labels']],
      [{ serviceTier: 'flex' }, []],
      [{ xFuture: 1 }, ['xFuture']],
    ],
  },
];

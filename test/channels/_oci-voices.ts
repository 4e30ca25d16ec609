import { providerVoice, type Json } from './_voices.ts';

/*
 * Oracle's native chat as its SDK documents it, and its streams as recorded by who uses it.
 * https://github.com/oracle/oci-typescript-sdk/tree/master/lib/generativeaiinference/lib/model
 */

const objects = (list: unknown): readonly Json[] => (Array.isArray(list) ? (list as readonly Json[]) : []);

const error = (status: number, message: string): string =>
  JSON.stringify({ code: status === 429 ? 'TooManyRequests' : 'InvalidParameter', message });

function usage(counts: unknown): Json {
  const { prompt_tokens, completion_tokens, total_tokens, ...details } = counts as Json;
  const { cached_tokens } = (details['prompt_tokens_details'] ?? {}) as Json;
  const { reasoning_tokens } = (details['completion_tokens_details'] ?? {}) as Json;
  return {
    promptTokens: prompt_tokens,
    completionTokens: completion_tokens,
    totalTokens: total_tokens,
    ...(cached_tokens === undefined ? {} : { promptTokensDetails: { cachedTokens: cached_tokens } }),
    ...(reasoning_tokens === undefined
      ? {}
      : { completionTokensDetails: { reasoningTokens: reasoning_tokens } }),
  };
}

const lower = (word: unknown): string => String(word).toLowerCase();
const line = (json: Json): string => `data: ${JSON.stringify(json)}\n\n`;

function partOf({ type, text, imageUrl, documentUrl }: Json): Json {
  if (type === 'IMAGE_URL') return { type: 'image_url', image_url: imageUrl };
  if (type === 'DOCUMENT')
    return { type: 'file', file: { file_data: (documentUrl as Json)['url'], filename: 'a.pdf' } };
  return { type: 'text', text };
}

/** The format of all models but Cohere's. */
export const ociGenericVoice = providerVoice({
  decodeRequest({ servingMode, chatRequest }) {
    const { messages, tools, toolChoice, responseFormat, maxTokens, isStream, reasoningEffort, ...body } =
      chatRequest as Json;
    const choice = toolChoice as Json | undefined;
    const format = responseFormat as Json | undefined;
    return {
      ...body,
      model: (servingMode as Json)['endpointId'] ?? (servingMode as Json)['modelId'],
      stream: isStream,
      max_tokens: maxTokens,
      ...(reasoningEffort === undefined ? {} : { reasoning_effort: lower(reasoningEffort) }),
      messages: objects(messages).map(({ role, content, toolCalls, toolCallId }) => ({
        role: lower(role),
        content: objects(content).map(partOf),
        ...(toolCallId === undefined ? {} : { tool_call_id: toolCallId }),
        ...(toolCalls === undefined
          ? {}
          : {
              tool_calls: objects(toolCalls).map(({ id, name, arguments: input }) => ({
                id,
                type: 'function',
                function: { name, arguments: input },
              })),
            }),
      })),
      ...(tools === undefined
        ? {}
        : {
            tools: objects(tools).map(({ name, description, parameters }) => ({
              type: 'function',
              function: { name, description, parameters },
            })),
          }),
      ...(choice === undefined
        ? {}
        : {
            tool_choice:
              choice['type'] === 'FUNCTION'
                ? { type: 'function', function: { name: choice['name'] } }
                : lower(choice['type']),
          }),
      ...(format === undefined
        ? {}
        : { response_format: { type: 'json_schema', json_schema: format['jsonSchema'] } }),
    };
  },
  whole: ({ choices, usage: counts }) => ({
    modelId: 'meta.llama-4',
    modelVersion: '1.0',
    chatResponse: {
      apiFormat: 'GENERIC',
      timeCreated: '2026-01-01T00:00:00Z',
      choices: objects(choices).map(({ index, message, finish_reason }) => ({
        index,
        message: messageOf(message as Json),
        finishReason: finish_reason,
      })),
      usage: usage(counts),
    },
  }),
  stream: () => ({
    chunk({ choices, usage: counts }) {
      const [choice] = objects(choices);
      if (choice !== undefined)
        return line({
          index: choice['index'],
          message: messageOf(choice['delta'] as Json),
          ...(choice['finish_reason'] === null ? {} : { finishReason: choice['finish_reason'] }),
          pad: 'aaa',
        });
      return counts === undefined || counts === null ? '' : line({ usage: usage(counts), pad: 'a' });
    },
    end: () => 'data: [DONE]\n\n',
  }),
  error,
});

function messageOf({ content, reasoning_content, tool_calls }: Json): Json {
  return {
    role: 'ASSISTANT',
    content: typeof content === 'string' ? [{ type: 'TEXT', text: content }] : null,
    ...(reasoning_content === undefined ? {} : { reasoningContent: reasoning_content }),
    ...(tool_calls === undefined
      ? {}
      : {
          toolCalls: objects(tool_calls).map(({ id, function: own }) => ({
            ...(id === undefined ? {} : { type: 'FUNCTION', id }),
            ...(own as Json),
          })),
        }),
  };
}

const jsonTypes: Readonly<Record<string, string>> = { str: 'string', int: 'integer', list: 'array' };

/** The turns of Cohere's conversation as messages; its calls have no ids, and are numbered as they come. */
function cohereMessages({ preambleOverride, chatHistory, message, toolResults }: Json): readonly Json[] {
  let calls = 0;
  let results = 0;
  const turns = objects(chatHistory).flatMap(({ role, message: text, toolCalls, toolResults: given }) => {
    if (role === 'TOOL') return resultsOf(given);
    const made = objects(toolCalls).map(({ name, parameters }) => ({
      id: `call_${calls++}`,
      type: 'function',
      function: { name, arguments: JSON.stringify(parameters) },
    }));
    return [
      {
        role: role === 'CHATBOT' ? 'assistant' : 'user',
        content: text,
        ...(made.length === 0 ? {} : { tool_calls: made }),
      },
    ];
  });
  function resultsOf(list: unknown): readonly Json[] {
    return objects(list).map(({ outputs }) => ({
      role: 'tool',
      tool_call_id: `call_${results++}`,
      content: objects(outputs)[0]?.['output'],
    }));
  }
  return [
    ...(preambleOverride === undefined ? [] : [{ role: 'system', content: preambleOverride }]),
    ...turns,
    ...(toolResults === undefined ? [{ role: 'user', content: message }] : resultsOf(toolResults)),
  ];
}

/** The format of Cohere's Command models. */
export const ociCohereVoice = providerVoice({
  decodeRequest({ servingMode, chatRequest }) {
    const request = chatRequest as Json;
    const format = request['responseFormat'] as Json | undefined;
    return {
      model: (servingMode as Json)['modelId'],
      stream: request['isStream'],
      max_tokens: request['maxTokens'],
      temperature: request['temperature'],
      stop: request['stopSequences'],
      messages: cohereMessages(request),
      ...(request['tools'] === undefined
        ? {}
        : {
            tools: objects(request['tools']).map(({ name, description, parameterDefinitions }) => {
              const given = Object.entries(parameterDefinitions as Record<string, Json>);
              return {
                type: 'function',
                function: {
                  name,
                  description,
                  parameters: {
                    type: 'object',
                    properties: Object.fromEntries(
                      given.map(([parameter, { type }]) => [parameter, { type: jsonTypes[String(type)] }]),
                    ),
                    required: given.filter(([, one]) => one['isRequired'] === true).map(([one]) => one),
                  },
                },
              };
            }),
          }),
      ...(format === undefined
        ? {}
        : {
            response_format: {
              type: 'json_schema',
              json_schema: { name: 'answer', schema: format['schema'] },
            },
          }),
    };
  },
  whole({ choices, usage: counts }) {
    const [choice] = objects(choices);
    const { content, tool_calls } = (choice?.['message'] ?? {}) as Json;
    return {
      modelId: 'cohere.command-r-08-2024',
      modelVersion: '1.7',
      chatResponse: {
        apiFormat: 'COHERE',
        text: content ?? '',
        chatHistory: [],
        finishReason: choice?.['finish_reason'] === 'length' ? 'MAX_TOKENS' : 'COMPLETE',
        ...(tool_calls === undefined ? {} : { toolCalls: objects(tool_calls).map(cohereCall) }),
        usage: usage(counts),
      },
    };
  },
  stream() {
    let text = '';
    let reason = 'COMPLETE';
    const calls: Json[] = [];
    return {
      chunk({ choices, usage: counts }) {
        const [choice] = objects(choices);
        const { content, tool_calls } = (choice?.['delta'] ?? {}) as Json;
        for (const { index, function: own } of objects(tool_calls)) {
          const { name, arguments: input } = own as Json;
          const known = (calls[Number(index)] ??= { function: { name: '', arguments: '' } });
          const whole = known['function'] as Json;
          whole['name'] = `${String(whole['name'])}${String(name ?? '')}`;
          whole['arguments'] = `${String(whole['arguments'])}${String(input ?? '')}`;
        }
        if (choice?.['finish_reason'] === 'length') reason = 'MAX_TOKENS';
        if (typeof content === 'string' && content !== '') {
          text += content;
          return line({ apiFormat: 'COHERE', text: content, pad: 'aaaa' });
        }
        if (counts === undefined || counts === null) return '';
        const toolCalls = calls.map(cohereCall);
        const end = { text, chatHistory: [], finishReason: reason, usage: usage(counts) };
        return [
          ...(toolCalls.length === 0 ? [] : [line({ apiFormat: 'COHERE', text: '', toolCalls })]),
          line({ apiFormat: 'COHERE', ...end, ...(toolCalls.length === 0 ? {} : { toolCalls }) }),
        ].join('');
      },
      end: () => '',
    };
  },
  error,
});

function cohereCall({ function: own }: Json): Json {
  const { name, arguments: input } = own as Json;
  return { name, parameters: JSON.parse(String(input)) as unknown };
}

/** The format of Cohere's Command A models, whose streams tell calls whole. */
export const ociCommandAVoice = providerVoice({
  decodeRequest({ servingMode, chatRequest }) {
    const { messages, tools, toolsChoice, thinking, responseFormat, maxTokens, isStream, stopSequences } =
      chatRequest as Json;
    const format = responseFormat as Json | undefined;
    const { type } = (thinking ?? {}) as Json;
    return {
      model: (servingMode as Json)['endpointId'] ?? (servingMode as Json)['modelId'],
      stream: isStream,
      max_tokens: maxTokens,
      temperature: (chatRequest as Json)['temperature'],
      stop: stopSequences,
      ...(type === undefined ? {} : { reasoning_effort: type === 'ENABLED' ? 'medium' : 'none' }),
      messages: objects(messages).map(({ role, content, toolCalls, toolCallId }) => ({
        role: lower(role),
        content: objects(content).map(partOf),
        ...(toolCallId === undefined ? {} : { tool_call_id: toolCallId }),
        ...(toolCalls === undefined
          ? {}
          : { tool_calls: objects(toolCalls).map((call) => ({ ...call, type: 'function' })) }),
      })),
      ...(tools === undefined
        ? {}
        : { tools: objects(tools).map((tool) => ({ ...tool, type: 'function' })) }),
      ...(toolsChoice === undefined ? {} : { tool_choice: lower(toolsChoice) }),
      ...(format === undefined
        ? {}
        : {
            response_format: {
              type: 'json_schema',
              json_schema: { name: 'answer', schema: format['schema'] },
            },
          }),
    };
  },
  whole({ choices, usage: counts }) {
    const [choice] = objects(choices);
    const { content, reasoning_content, tool_calls } = (choice?.['message'] ?? {}) as Json;
    return {
      modelId: 'cohere.command-a-reasoning',
      modelVersion: '1.0',
      chatResponse: {
        apiFormat: 'COHEREV2',
        id: 'r-1',
        message: commandA(reasoning_content, content, tool_calls),
        finishReason: choice?.['finish_reason'] === 'length' ? 'MAX_TOKENS' : 'COMPLETE',
        usage: usage(counts),
      },
    };
  },
  stream() {
    const whole = { thinking: '', text: '' };
    let reason = 'COMPLETE';
    const calls: Json[] = [];
    return {
      chunk({ choices, usage: counts }) {
        const [choice] = objects(choices);
        const { content, reasoning_content, tool_calls } = (choice?.['delta'] ?? {}) as Json;
        for (const { index, id, function: own } of objects(tool_calls)) {
          const { name, arguments: input } = own as Json;
          const known = (calls[Number(index)] ??= { id, function: { name: '', arguments: '' } });
          const made = known['function'] as Json;
          made['name'] = `${String(made['name'])}${String(name ?? '')}`;
          made['arguments'] = `${String(made['arguments'])}${String(input ?? '')}`;
        }
        if (choice?.['finish_reason'] === 'length') reason = 'MAX_TOKENS';
        const says = (content ?? '') !== '' || (reasoning_content ?? '') !== '';
        if (says) {
          whole.thinking += String(reasoning_content ?? '');
          whole.text += String(content ?? '');
          return line({ apiFormat: 'COHEREV2', message: commandA(reasoning_content, content), pad: 'aa' });
        }
        if (counts === undefined || counts === null) return '';
        return line({
          apiFormat: 'COHEREV2',
          message: commandA(whole.thinking, whole.text, calls.length === 0 ? undefined : calls),
          finishReason: calls.length > 0 ? 'TOOL_CALL' : reason,
          usage: usage(counts),
        });
      },
      end: () => '',
    };
  },
  error,
});

function commandA(thinking: unknown, text: unknown, calls?: unknown): Json {
  return {
    role: 'ASSISTANT',
    content: [
      ...(typeof thinking === 'string' && thinking !== '' ? [{ type: 'THINKING', thinking }] : []),
      ...(typeof text === 'string' && text !== '' ? [{ type: 'TEXT', text }] : []),
    ],
    ...(calls === undefined
      ? {}
      : {
          toolCalls: objects(calls).map(({ id, function: own }) => ({ id, type: 'FUNCTION', function: own })),
        }),
  };
}

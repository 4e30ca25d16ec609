/** What clients send: a session in the words of a wire format, with the headers of its official library. */
import { writeJson, type JsonStyle } from './json-styles.ts';
import type { Session } from './sessions.ts';

/** A wire format that clients speak, and providers. */
export const wires = ['chat', 'messages', 'responses', 'generateContent'] as const;
export type Wire = (typeof wires)[number];

/** The body of a call. */
export function bodyOf(
  wire: Wire,
  session: Session,
  model: string,
  stream = false,
  style: JsonStyle = 'javascript',
): string {
  return writeJson(writers[wire](session, model, stream), style);
}

/** Returns the path of a request. */
export function pathOf(wire: Wire, model: string, stream = false): string {
  if (wire !== 'generateContent') return paths[wire];
  return `/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`;
}

const paths = { chat: '/v1/chat/completions', messages: '/v1/messages', responses: '/v1/responses' } as const;

/** The headers that the format's official library sends, its length apart. */
export function headersOf(wire: Wire, key: string): Readonly<Record<string, string>> {
  const common = {
    accept: 'application/json',
    'accept-language': '*',
    'content-type': 'application/json',
    'sec-fetch-mode': 'cors',
  };
  if (wire === 'generateContent')
    return {
      ...common,
      'user-agent': 'bench-sdk/3.1.0 node/v24',
      'x-goog-api-client': 'bench-sdk/3.1.0 node/v24',
      'x-goog-api-key': key,
    };
  const library = {
    ...common,
    'user-agent': 'Bench/JS 7.55.0',
    'x-stainless-retry-count': '0',
    'x-stainless-lang': 'js',
    'x-stainless-package-version': '7.55.0',
    'x-stainless-os': 'Linux',
    'x-stainless-runtime': 'node',
  };
  return wire === 'messages'
    ? { ...library, 'anthropic-version': '2023-06-01', 'x-api-key': key }
    : { ...library, authorization: `Bearer ${key}` };
}

/** Headers that browsers, load balancers and tracing add to those of a library. */
export const addedHeaders: Readonly<Record<string, string>> = {
  'x-forwarded-for': '203.0.113.7, 10.0.0.4',
  'x-forwarded-proto': 'https',
  'x-forwarded-host': 'gateway.example.com',
  'x-forwarded-port': '443',
  'x-real-ip': '203.0.113.7',
  'x-request-start': 't=1762000000.123',
  'x-amzn-trace-id': 'Root=1-690a5f2e-0123456789abcdef01234567',
  traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
  tracestate: 'congo=t61rcWkgMzE',
  baggage: 'team=search,environment=production',
  'cache-control': 'no-cache',
  pragma: 'no-cache',
};

const writers: Readonly<Record<Wire, (session: Session, model: string, stream: boolean) => object>> = {
  chat: ({ instructions, tools, turns }, model, stream) => ({
    model,
    messages: [
      { role: 'system', content: instructions },
      ...turns.map((turn) => {
        if (turn.role === 'user') return { role: 'user', content: turn.text };
        if (turn.role === 'tool') return { role: 'tool', tool_call_id: turn.id, content: turn.text };
        const { text, call } = turn;
        if (call === undefined) return { role: 'assistant', content: text };
        const called = { name: call.name, arguments: JSON.stringify(call.input) };
        return {
          role: 'assistant',
          content: text === '' ? null : text,
          tool_calls: [{ id: call.id, type: 'function', function: called }],
        };
      }),
    ],
    ...(tools.length > 0
      ? { tools: tools.map((tool) => ({ type: 'function', function: tool })), tool_choice: 'auto' }
      : {}),
    max_completion_tokens: 8_000,
    ...(stream ? { stream, stream_options: { include_usage: true } } : {}),
  }),
  messages: ({ instructions, tools, turns }, model, stream) => ({
    model,
    max_tokens: 8_000,
    system: [{ type: 'text', text: instructions, cache_control: { type: 'ephemeral' } }],
    ...(tools.length > 0
      ? {
          tools: tools.map(({ name, description, parameters }) => ({
            name,
            description,
            input_schema: parameters,
          })),
        }
      : {}),
    messages: turns.map((turn) => {
      if (turn.role === 'user') return { role: 'user', content: [{ type: 'text', text: turn.text }] };
      if (turn.role === 'tool')
        return { role: 'user', content: [{ type: 'tool_result', tool_use_id: turn.id, content: turn.text }] };
      const { text, call } = turn;
      return {
        role: 'assistant',
        content: [
          ...(text === '' ? [] : [{ type: 'text', text }]),
          ...(call === undefined ? [] : [{ type: 'tool_use', ...call }]),
        ],
      };
    }),
    ...(stream ? { stream } : {}),
  }),
  responses: ({ instructions, tools, turns }, model, stream) => ({
    model,
    instructions,
    input: turns.flatMap((turn): object[] => {
      if (turn.role === 'user')
        return [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: turn.text }] }];
      if (turn.role === 'tool')
        return [{ type: 'function_call_output', call_id: turn.id, output: turn.text }];
      const { text, call } = turn;
      const message = { type: 'message', role: 'assistant', content: [{ type: 'output_text', text }] };
      if (call === undefined) return [message];
      const { id, name, input } = call;
      const called = { type: 'function_call', call_id: id, name, arguments: JSON.stringify(input) };
      return text === '' ? [called] : [message, called];
    }),
    ...(tools.length > 0
      ? { tools: tools.map((tool) => ({ type: 'function', ...tool, strict: false })), tool_choice: 'auto' }
      : {}),
    max_output_tokens: 8_000,
    store: false,
    ...(stream ? { stream } : {}),
  }),
  generateContent: ({ instructions, tools, turns }) => ({
    contents: turns.map((turn) => {
      if (turn.role === 'user') return { role: 'user', parts: [{ text: turn.text }] };
      if (turn.role === 'tool') {
        const { id, name, text } = turn;
        return {
          role: 'user',
          parts: [{ functionResponse: { ...idMember(id), name, response: { output: text } } }],
        };
      }
      const { text, call } = turn;
      return {
        role: 'model',
        parts: [
          ...(text === '' ? [] : [{ text }]),
          ...(call === undefined
            ? []
            : [{ functionCall: { ...idMember(call.id), name: call.name, args: call.input } }]),
        ],
      };
    }),
    systemInstruction: { parts: [{ text: instructions }] },
    ...(tools.length > 0
      ? {
          tools: [
            {
              functionDeclarations: tools.map(({ name, description, parameters }) => ({
                name,
                description,
                parametersJsonSchema: parameters,
              })),
            },
          ],
        }
      : {}),
    generationConfig: { maxOutputTokens: 8_000 },
  }),
};

/** Clients of generateContent need not give ids. */
function idMember(id: string): { readonly id?: string } {
  return id === '' ? {} : { id };
}

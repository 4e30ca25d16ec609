import { setTimeout as wait } from 'node:timers/promises';
import {
  Server,
  type CallToolResult,
  type GetPromptResult,
  type ReadResourceResult,
  type ServerContext,
} from '@modelcontextprotocol/server';

/*
 * The server that the published conformance suite of MCP expects in front of its server scenarios: tools, prompts and resources with these
 * names and contents.
 */

const image = {
  type: 'image',
  data: 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==',
  mimeType: 'image/png',
} as const;
const audio = {
  type: 'audio',
  data: 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=',
  mimeType: 'audio/wav',
} as const;
const text = (value: string) => ({ type: 'text', text: value }) as const;
const resource = (uri: string, mimeType: string, value: string) =>
  ({ type: 'resource', resource: { uri, mimeType, text: value } }) as const;

type Arguments = Readonly<Record<string, unknown>>;
type Tool = (args: Arguments, context: ServerContext) => Promise<CallToolResult['content']>;

const elicit = async (
  context: ServerContext,
  message: string,
  properties: object,
  required: string[] = [],
) => {
  const { action, content = {} } = await context.mcpReq.elicitInput({
    message,
    requestedSchema: { type: 'object', properties: properties as never, required },
  });
  return `action=${action}, content=${JSON.stringify(content)}`;
};

const options = (type: string, key: 'oneOf' | 'anyOf') => ({
  [key]: ['value1', 'value2', 'value3'].map((value, n) => ({ const: value, title: `${type} ${n + 1}` })),
});

const tools: Readonly<Record<string, Tool>> = {
  test_simple_text: async () => [text('This is a simple text response for testing.')],
  test_image_content: async () => [image],
  test_audio_content: async () => [audio],
  test_embedded_resource: async () => [
    resource('test://embedded-resource', 'text/plain', 'This is an embedded resource content.'),
  ],
  test_multiple_content_types: async () => [
    text('Multiple content types test:'),
    image,
    resource('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}'),
  ],
  async test_tool_with_logging(_, { mcpReq }) {
    for (const step of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
      await mcpReq.log('info', step);
      await wait(50);
    }
    return [text('Tool with logging executed successfully')];
  },
  async test_tool_with_progress(_, { mcpReq }) {
    const progressToken = mcpReq._meta?.progressToken ?? 0;
    for (const progress of [0, 50, 100]) {
      await mcpReq.notify({
        method: 'notifications/progress',
        params: { progressToken, progress, total: 100, message: `Completed step ${progress} of 100` },
      });
      await wait(50);
    }
    return [text(String(progressToken))];
  },
  async test_error_handling() {
    throw new Error('This tool intentionally returns an error for testing');
  },
  async test_reconnection(_, { http }) {
    http?.closeSSE?.();
    await wait(100);
    return [text('Reconnection test completed successfully.')];
  },
  async test_sampling({ prompt }, { mcpReq }) {
    const { content } = await mcpReq.requestSampling({
      messages: [{ role: 'user', content: text(String(prompt)) }],
      maxTokens: 100,
    });
    const [first] = [content].flat();
    return [text(`LLM response: ${first?.type === 'text' ? first.text : 'none'}`)];
  },
  test_elicitation: async ({ message }, context) => [
    text(
      `User response: ${await elicit(context, String(message), { response: { type: 'string', description: "User's response" } }, ['response'])}`,
    ),
  ],
  test_elicitation_sep1034_defaults: async (_, context) => [
    text(
      `Elicitation completed: ${await elicit(context, 'Please review the defaults', {
        name: { type: 'string', description: 'User name', default: 'John Doe' },
        age: { type: 'integer', description: 'User age', default: 30 },
        score: { type: 'number', description: 'User score', default: 95.5 },
        status: {
          type: 'string',
          description: 'User status',
          enum: ['active', 'inactive', 'pending'],
          default: 'active',
        },
        verified: { type: 'boolean', description: 'Verification status', default: true },
      })}`,
    ),
  ],
  test_elicitation_sep1330_enums: async (_, context) => [
    text(
      `Elicitation completed: ${await elicit(context, 'Please select options', {
        untitledSingle: { type: 'string', enum: ['option1', 'option2', 'option3'] },
        titledSingle: { type: 'string', ...options('Option', 'oneOf') },
        legacyEnum: {
          type: 'string',
          enum: ['opt1', 'opt2', 'opt3'],
          enumNames: ['Option One', 'Option Two', 'Option Three'],
        },
        untitledMulti: { type: 'array', items: { type: 'string', enum: ['option1', 'option2', 'option3'] } },
        titledMulti: { type: 'array', items: options('Choice', 'anyOf') },
      })}`,
    ),
  ],
  json_schema_2020_12_tool: async (args) => [text(JSON.stringify(args))],
};

const plainSchema = { type: 'object', properties: {} } as const;
const schemas: Readonly<Record<string, object>> = {
  test_sampling: { type: 'object', properties: { prompt: { type: 'string' } }, required: ['prompt'] },
  test_elicitation: { type: 'object', properties: { message: { type: 'string' } }, required: ['message'] },
  json_schema_2020_12_tool: {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    $defs: {
      address: { type: 'object', properties: { street: { type: 'string' }, city: { type: 'string' } } },
    },
    properties: { name: { type: 'string' }, address: { $ref: '#/$defs/address' } },
    additionalProperties: false,
  },
};

type Message = GetPromptResult['messages'][number];
const user = (content: Message['content']): Message => ({ role: 'user', content });

const prompts: Readonly<Record<string, { readonly names: string[]; read(args: Arguments): Message[] }>> = {
  test_simple_prompt: { names: [], read: () => [user(text('This is a simple prompt for testing.'))] },
  test_prompt_with_arguments: {
    names: ['arg1', 'arg2'],
    read: ({ arg1, arg2 }) => [
      user(text(`Prompt with arguments: arg1='${String(arg1)}', arg2='${String(arg2)}'`)),
    ],
  },
  test_prompt_with_embedded_resource: {
    names: ['resourceUri'],
    read: ({ resourceUri }) => [
      user(resource(String(resourceUri), 'text/plain', 'Embedded resource content for testing.')),
      user(text('Please process the embedded resource above.')),
    ],
  },
  test_prompt_with_image: {
    names: [],
    read: () => [user(image), user(text('Please analyze the image above.'))],
  },
};

const resources: readonly { uri: string; mimeType: string; text?: string; blob?: string }[] = [
  {
    uri: 'test://static-text',
    mimeType: 'text/plain',
    text: 'This is the content of the static text resource.',
  },
  { uri: 'test://static-binary', mimeType: 'image/png', blob: image.data },
  { uri: 'test://watched-resource', mimeType: 'text/plain', text: 'Watched resource content' },
];

/** Makes the server of one session. */
export function everythingServer(): Server {
  const server = new Server(
    { name: 'everything', version: '1.0.0' },
    {
      capabilities: {
        tools: { listChanged: true },
        resources: { subscribe: true, listChanged: true },
        prompts: { listChanged: true },
        logging: {},
        completions: {},
      },
    },
  );
  server.setRequestHandler('tools/list', async () => ({
    tools: Object.keys(tools).map((name) => ({
      name,
      description: `The tool ${name}`,
      inputSchema: (schemas[name] ?? plainSchema) as typeof plainSchema,
    })),
  }));
  server.setRequestHandler('tools/call', async ({ params }, context) => {
    try {
      return { content: (await tools[params.name]?.(params.arguments ?? {}, context)) ?? [] };
    } catch (error) {
      return { content: [text((error as Error).message)], isError: true };
    }
  });
  server.setRequestHandler('prompts/list', async () => ({
    prompts: Object.entries(prompts).map(([name, { names }]) => ({
      name,
      description: `The prompt ${name}`,
      arguments: names.map((one) => ({ name: one, description: `The argument ${one}`, required: true })),
    })),
  }));
  server.setRequestHandler('prompts/get', async ({ params }) => ({
    messages: prompts[params.name]?.read(params.arguments ?? {}) ?? [],
  }));
  server.setRequestHandler('resources/list', async () => ({
    resources: resources.map(({ uri, mimeType }) => ({
      uri,
      mimeType,
      name: uri,
      description: `The resource ${uri}`,
    })),
  }));
  server.setRequestHandler('resources/templates/list', async () => ({
    resourceTemplates: [
      { name: 'template', uriTemplate: 'test://template/{id}/data', mimeType: 'application/json' },
    ],
  }));
  server.setRequestHandler('resources/read', async ({ params: { uri } }) => {
    const [, id] = /^test:\/\/template\/(.+)\/data$/.exec(uri) ?? [];
    const found =
      id === undefined
        ? resources.find((one) => one.uri === uri)
        : {
            uri,
            mimeType: 'application/json',
            text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }),
          };
    return { contents: (found === undefined ? [] : [found]) as ReadResourceResult['contents'] };
  });
  server.setRequestHandler('resources/subscribe', async () => ({}));
  server.setRequestHandler('resources/unsubscribe', async () => ({}));
  server.setRequestHandler('completion/complete', async () => ({
    completion: { values: [], total: 0, hasMore: false },
  }));
  return server;
}

import { isObject, type JsonObject, type JsonValue } from '../../core/model/json.ts';

/** The formats in which a chat is written. */
export type ChatFormat = 'chat-completions' | 'messages' | 'responses' | 'generate-content';

export const chatFormats: readonly ChatFormat[] = [
  'chat-completions',
  'messages',
  'responses',
  'generate-content',
];

type List = JsonObject[];

/** Encoders of the parts of a conversation in a format; each returns items of the history. */
interface Words {
  readonly text: (role: 'user' | 'assistant', text: string) => JsonObject;
  readonly parts: (texts: readonly string[]) => JsonObject;
  readonly images: (data: readonly string[]) => JsonObject;
  readonly calls: (ids: readonly string[]) => List;
  readonly results: (ids: readonly string[]) => List;
  readonly thinking: (texts: readonly string[]) => List;
  readonly tool: (name: string, schema: JsonObject) => JsonObject;
  readonly body: (history: List, tools: List, more: JsonObject) => JsonObject;
  /** Instructions in as many pieces as the format allows. */
  readonly system: (texts: readonly string[]) => JsonObject;
  /** A setting that is an object, with these members beside its own. */
  readonly settings: (more: JsonObject) => JsonObject;
}

const flat = (tools: List): JsonObject => (tools.length === 0 ? {} : { tools });

const chat: Words = {
  text: (role, content) => ({ role, content }),
  parts: (texts) => ({ role: 'user', content: texts.map((text) => ({ type: 'text', text })) }),
  images: (data) => ({
    role: 'user',
    content: data.map((one) => ({ type: 'image_url', image_url: { url: `data:image/png;base64,${one}` } })),
  }),
  calls: (ids) => [
    {
      role: 'assistant',
      content: null,
      tool_calls: ids.map((id) => ({
        id,
        type: 'function',
        function: { name: 'look', arguments: '{"a":1}' },
      })),
    },
  ],
  results: (ids) => ids.map((id) => ({ role: 'tool', tool_call_id: id, content: 'found' })),
  thinking: (texts) => [
    {
      role: 'assistant',
      content: 'so',
      reasoning_details: texts.map((text, index) => ({
        type: 'reasoning.text',
        text,
        signature: `c2ln${index}`,
        format: 'anthropic-claude-v1',
        index,
      })),
    },
  ],
  tool: (name, parameters) => ({ type: 'function', function: { name, description: 'A tool.', parameters } }),
  body: (messages, tools, more) => ({ model: 'm', messages, ...flat(tools), ...more }),
  system: (texts) => ({ messages: [...texts.map((content) => ({ role: 'system', content })), hello.chat] }),
  settings: (more) => ({ response_format: { type: 'json_object', ...more } }),
};

const messages: Words = {
  text: (role, content) => ({ role, content }),
  parts: (texts) => ({ role: 'user', content: texts.map((text) => ({ type: 'text', text })) }),
  images: (data) => ({
    role: 'user',
    content: data.map((one) => ({
      type: 'image',
      source: { type: 'base64', media_type: 'image/png', data: one },
    })),
  }),
  calls: (ids) => [
    {
      role: 'assistant',
      content: ids.map((id) => ({ type: 'tool_use', id, name: 'look', input: { a: 1 } })),
    },
  ],
  results: (ids) => [
    { role: 'user', content: ids.map((id) => ({ type: 'tool_result', tool_use_id: id, content: 'found' })) },
  ],
  thinking: (texts) => [
    {
      role: 'assistant',
      content: [
        ...texts.map((thinking, index) => ({ type: 'thinking', thinking, signature: `c2ln${index}` })),
        { type: 'text', text: 'so' },
      ],
    },
  ],
  tool: (name, input_schema) => ({ name, description: 'A tool.', input_schema }),
  body: (turns, tools, more) => ({
    model: 'm',
    max_tokens: 100,
    messages: turns,
    ...flat(tools),
    ...more,
  }),
  system: (texts) => ({ system: texts.map((text) => ({ type: 'text', text })) }),
  settings: (more) => ({ thinking: { type: 'enabled', budget_tokens: 1024, ...more } }),
};

const responses: Words = {
  text: (role, content) => ({ role, content }),
  parts: (texts) => ({ role: 'user', content: texts.map((text) => ({ type: 'input_text', text })) }),
  images: (data) => ({
    role: 'user',
    content: data.map((one) => ({ type: 'input_image', image_url: `data:image/png;base64,${one}` })),
  }),
  calls: (ids) =>
    ids.map((id) => ({ type: 'function_call', call_id: id, name: 'look', arguments: '{"a":1}' })),
  results: (ids) => ids.map((id) => ({ type: 'function_call_output', call_id: id, output: 'found' })),
  thinking: (texts) => [
    ...texts.map((text, index) => ({
      type: 'reasoning',
      id: `rs_${index}`,
      summary: [{ type: 'summary_text', text }],
      encrypted_content: `c2ln${index}`,
    })),
    { role: 'assistant', content: 'so' },
  ],
  tool: (name, parameters) => ({ type: 'function', name, description: 'A tool.', parameters }),
  body: (input, tools, more) => ({ model: 'm', input, ...flat(tools), ...more }),
  system: (texts) => ({ input: [...texts.map((content) => ({ role: 'developer', content })), hello.chat] }),
  settings: (more) => ({ reasoning: { effort: 'low', ...more } }),
};

const generateContent: Words = {
  text: (role, text) => ({ role: role === 'user' ? 'user' : 'model', parts: [{ text }] }),
  parts: (texts) => ({ role: 'user', parts: texts.map((text) => ({ text })) }),
  images: (data) => ({
    role: 'user',
    parts: data.map((one) => ({ inlineData: { mimeType: 'image/png', data: one } })),
  }),
  calls: (ids) => [
    { role: 'model', parts: ids.map((id) => ({ functionCall: { id, name: 'look', args: { a: 1 } } })) },
  ],
  results: (ids) => [
    {
      role: 'user',
      parts: ids.map((id) => ({ functionResponse: { id, name: 'look', response: { result: 'found' } } })),
    },
  ],
  thinking: (texts) => [
    {
      role: 'model',
      parts: [
        ...texts.map((text, index) => ({ text, thought: true, thoughtSignature: `c2ln${index}` })),
        { text: 'so' },
      ],
    },
  ],
  tool: (name, parameters) => ({ functionDeclarations: [{ name, description: 'A tool.', parameters }] }),
  body: (contents, tools, more) => ({ contents, ...flat(tools), ...more }),
  system: (texts) => ({ systemInstruction: { parts: texts.map((text) => ({ text })) } }),
  settings: (more) => ({ generationConfig: { thinkingConfig: { thinkingBudget: 1024, ...more } } }),
};

const hello = { chat: { role: 'user', content: 'hello' } };

const wordsOf: Readonly<Record<ChatFormat, Words>> = {
  'chat-completions': chat,
  messages,
  responses,
  'generate-content': generateContent,
};

/** Shapes whose size is a number of different names. */
export const ofNames =
  /unknown member|many members|many tools|wide schema|schema of many parts|references|properties/;

/** A request whose size is given: its name, and how it is made in a format. */
export interface RequestShape {
  readonly name: string;
  /** Its size is no longer than this. */
  readonly most?: number;
  make(format: ChatFormat, size: number): JsonObject;
}

export const times = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index));
const ids = (count: number): string[] => times(count, (index) => `call_${index}`);

/** A shape of which only the history has a size. */
function history(name: string, items: (words: Words, size: number) => List): RequestShape {
  return {
    name,
    make: (format, size) => {
      const words = wordsOf[format];
      return words.body([words.text('user', 'hello'), ...items(words, size)], [], {});
    },
  };
}

/** A shape of which only the tools have a size. */
function withTools(name: string, make: (words: Words, size: number) => List, most?: number): RequestShape {
  return {
    name,
    ...(most === undefined ? {} : { most }),
    make: (format, size) => {
      const words = wordsOf[format];
      return words.body([words.text('user', 'hello')], make(words, size), {});
    },
  };
}

export function members(count: number, prefix = 'odd_'): JsonObject {
  return Object.fromEntries(times(count, (index) => [`${prefix}${index}`, index]));
}

const properties = (count: number): JsonObject =>
  Object.fromEntries(times(count, (index) => [`p${index}`, { type: 'string' }]));

function nested(depth: number): JsonObject {
  let schema: JsonObject = { type: 'string' };
  for (let index = 0; index < depth; index += 1)
    schema = { type: 'object', properties: { inner: schema }, required: ['inner'] };
  return schema;
}

/** The value with members added to every object in it. */
function inside(value: JsonObject, more: JsonObject): JsonObject {
  const widened = (inner: JsonValue): JsonValue =>
    Array.isArray(inner)
      ? inner.map((one) => widened(one as JsonValue))
      : isObject(inner)
        ? inside(inner, more)
        : inner;
  return {
    ...Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, widened(inner as JsonValue)])),
    ...more,
  };
}

const object = (inner: JsonObject): JsonObject => ({
  type: 'object',
  properties: { value: { type: 'string' } },
  ...inner,
});
const oneTool = (schema: (size: number) => JsonValue) => (words: Words, size: number) => [
  words.tool('look', schema(size) as JsonObject),
];

/** Requests that untrusted clients may send, in every size. */
export const requestShapes: readonly RequestShape[] = [
  history('one long word', (words, size) => [words.text('user', 'a'.repeat(64 * size))]),
  history('escaped text', (words, size) => [words.text('user', '"\\\n'.repeat(16 * size))]),
  history('many messages of one role', (words, size) => times(size, () => words.text('user', 'hello'))),
  history('many messages of the model', (words, size) => times(size, () => words.text('assistant', 'hello'))),
  history('blank messages of the model', (words, size) => times(size, () => words.text('assistant', ' \n'))),
  history('alternating roles', (words, size) =>
    times(size, (index) => words.text(index % 2 === 0 ? 'assistant' : 'user', 'hello')),
  ),
  history('many parts', (words, size) => [words.parts(times(size, () => 'hello'))]),
  history('blank parts', (words, size) => [words.parts(times(size, () => ' '))]),
  history('many images', (words, size) => [words.images(times(size, () => 'iVBORw0KGgo='))]),
  history('calls and results in pairs', (words, size) =>
    ids(size).flatMap((id) => [...words.calls([id]), ...words.results([id])]),
  ),
  history('calls in one turn, results behind', (words, size) => [
    ...words.calls(ids(size)),
    ...words.results(ids(size).toReversed()),
  ]),
  history('calls in many turns, results behind', (words, size) => [
    ...ids(size).flatMap((id) => [...words.calls([id]), ...words.results([id])]),
    ...words.calls(ids(size).map((id) => `late_${id}`)),
    ...words.results(ids(size).map((id) => `late_${id}`)),
  ]),
  history('calls that all have one id', (words, size) =>
    times(size, () => 'call_0').flatMap((id) => [...words.calls([id]), ...words.results([id])]),
  ),
  history('calls without results', (words, size) => ids(size).flatMap((id) => words.calls([id]))),
  history('much thinking in one turn', (words, size) => words.thinking(times(size, () => 'hm'))),
  history('a thought in each turn', (words, size) =>
    times(size, () => words.thinking(['hm'])).flatMap((turn) => [...turn, words.text('user', 'go on')]),
  ),
  {
    name: 'many instructions',
    make: (format, size) => {
      const words = wordsOf[format];
      return words.body([words.text('user', 'hello')], [], words.system(times(size, () => 'be kind')));
    },
  },
  {
    name: 'unknown members',
    make: (format, size) => {
      const words = wordsOf[format];
      return words.body([words.text('user', 'hello')], [], members(size));
    },
  },
  {
    name: 'unknown members of settings',
    make: (format, size) => {
      const words = wordsOf[format];
      return words.body([words.text('user', 'hello')], [], words.settings(members(size)));
    },
  },
  {
    name: 'unknown members that read like marks',
    make: (format, size) => {
      const words = wordsOf[format];
      return words.body([words.text('user', 'hello')], [], members(size, '$odd_'));
    },
  },
  history('unknown members of a message that read like marks', (words, size) => [
    { ...words.text('user', 'hello'), ...members(size, '$odd_') },
  ]),
  history('unknown members of a call', (words, size) => {
    const [call] = words.calls(['call_0']);
    return [inside(call ?? {}, members(size)), ...words.results(['call_0'])];
  }),
  withTools('unknown members of a tool', (words, size) => [
    inside(words.tool('look', object({})), members(size)),
  ]),
  history('unknown members of a message', (words, size) => [
    { ...words.text('user', 'hello'), ...members(size) },
  ]),
  history('an unknown member in each message', (words, size) =>
    times(size, (index) => ({ ...words.text('user', 'hello'), [`odd_${index}`]: index })),
  ),
  {
    name: 'a deep unknown member',
    most: 500,
    make: (format, size) => {
      const words = wordsOf[format];
      return words.body([words.text('user', 'hello')], [], { odd: nested(size) });
    },
  },
  withTools('many tools', (words, size) => times(size, (index) => words.tool(`look_${index}`, object({})))),
  withTools('many tools with odd names', (words, size) =>
    times(size, (index) => words.tool(`look at.${index}`, object({}))),
  ),
  withTools(
    'a wide schema',
    oneTool((size) => object({ properties: properties(size), required: Object.keys(properties(size)) })),
  ),
  withTools(
    'a deep schema',
    oneTool((size) => nested(size)),
    500,
  ),
  withTools(
    'many choices in a schema',
    oneTool((size) => object({ properties: { p: { anyOf: times(size, () => ({ type: 'string' })) } } })),
  ),
  withTools(
    'a long enum',
    oneTool((size) => object({ properties: { p: { type: 'string', enum: ids(size) } } })),
  ),
  withTools(
    'a schema of many parts',
    oneTool((size) =>
      object({
        allOf: times(size, (index) => ({
          properties: { [`p${index}`]: { type: 'string' } },
          required: [`p${index}`],
        })),
      }),
    ),
  ),
  withTools(
    'parts of a schema that differ',
    oneTool((size) =>
      object({
        allOf: [{ enum: ids(size) }, ...times(size, (index) => ({ enum: [`other ${index}`] }))],
      }),
    ),
  ),
  withTools(
    'many references',
    oneTool((size) =>
      object({
        $defs: Object.fromEntries(times(size, (index) => [`d${index}`, { type: 'string' }])),
        properties: Object.fromEntries(times(size, (index) => [`p${index}`, { $ref: `#/$defs/d${index}` }])),
      }),
    ),
  ),
  withTools(
    'many references to one large definition',
    oneTool((size) =>
      object({
        $defs: { large: { type: 'string', ...members(size) } },
        properties: Object.fromEntries(times(size, (index) => [`p${index}`, { $ref: '#/$defs/large' }])),
      }),
    ),
  ),
  withTools(
    'a long name above many properties',
    oneTool((size) =>
      object({
        properties: { ['n'.repeat(16 * size)]: { type: 'object', properties: properties(size) } },
      }),
    ),
  ),
];

/**
 * What clients send: sessions of a coding agent as they grow, and simpler bodies, made by a seeded generator so that each run measures
 * the same bytes. The structure is that of real agents (tools with long schemas, results full of code, few characters beyond ASCII);
 * every text is made here.
 */

/** A wire format that clients speak, and providers. */
export const wires = ['chat', 'messages', 'responses', 'generateContent'] as const;
export type Wire = (typeof wires)[number];

/** What is said before a call, in no format. */
export interface Session {
  readonly instructions: string;
  readonly tools: readonly Tool[];
  /** It begins with a user and ends with a user, or with the result of a tool. */
  readonly turns: readonly Turn[];
}

export interface Tool {
  readonly name: string;
  readonly description: string;
  readonly parameters: object;
}

export type Turn =
  | { readonly role: 'user'; readonly text: string }
  | { readonly role: 'assistant'; readonly text: string; readonly call?: ToolCall }
  | { readonly role: 'tool'; readonly id: string; readonly name: string; readonly text: string };

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
}

/** The inputs by name, with what each is about. Sizes are of the chat-completions body: a few percent more or less in other formats. */
export const inputs = {
  small: 'small chat, 1 KB with escaped text',
  plain: 'plain request, 100 KB without escapes',
  turn1: 'agent turn 1, 55 KB, 12 tools',
  turn30: 'agent turn 30, 250 KB, 77 messages',
  turn100: 'agent turn 100, 800 KB, 285 messages',
} as const;
export type InputName = keyof typeof inputs;

const made = new Map<InputName, Session>();

/** A session, the same in each process. */
export function sessionOf(name: InputName): Session {
  let session = made.get(name);
  if (session === undefined) {
    session = makers[name]();
    made.set(name, session);
  }
  return session;
}

const makers: Readonly<Record<InputName, () => Session>> = {
  small: () => {
    const random = generator(1);
    const text = `Why does this fail?\n\n\`\`\`ts\n${code(random, 620, false)}\n\`\`\`\nIt says "not a function".`;
    return { instructions: prose(random, 120, '\n'), tools: [], turns: [{ role: 'user', text }] };
  },
  plain: () => ({
    instructions: 'Be brief.',
    tools: [],
    turns: [{ role: 'user', text: prose(generator(2), 100_000, ' ') }],
  }),
  turn1: () => agentSession(1, 55_000),
  turn30: () => agentSession(77, 250_000),
  turn100: () => agentSession(285, 800_000),
};

/** A session of so many messages, the instructions apart, in about so many bytes. The number is odd: the last is a tool's result, or the user's. */
function agentSession(messages: number, bytes: number): Session {
  const random = generator(3);
  const tools = toolNames.map((name) => toolNamed(random, name));
  const instructions = markdown(random, 6_800);
  const turns: Turn[] = [{ role: 'user', text: `${question(random)}\n\n${surroundings(random, 18_000)}` }];
  const weights: number[] = [];
  while (turns.length < messages) {
    // Now and then the agent has finished something and its user asks for more.
    if (turns.length % 24 === 23) {
      turns.push({ role: 'assistant', text: prose(random, 500, '\n') });
      turns.push({ role: 'user', text: question(random) });
      continue;
    }
    const call = callOf(random);
    weights.push(0.1 + random() ** 2);
    turns.push({ role: 'assistant', text: random() < 0.6 ? prose(random, 140, ' ') : '', call });
    turns.push({ role: 'tool', id: call.id, name: call.name, text: '' });
  }
  // Results take what the rest leaves.
  const left = bytes - bodyOf('chat', { instructions, tools, turns }, 'bench').length;
  const share = left / weights.reduce((sum, weight) => sum + weight, 0);
  const filled = turns.map((turn) =>
    turn.role === 'tool' ? { ...turn, text: result(random, share * (weights.shift() ?? 0)) } : turn,
  );
  return { instructions, tools, turns: filled };
}

/** The body of a call. */
export function bodyOf(wire: Wire, session: Session, model: string, stream = false): string {
  return JSON.stringify(writers[wire](session, model, stream));
}

/** Where it is sent. */
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
      const said = { type: 'message', role: 'assistant', content: [{ type: 'output_text', text }] };
      if (call === undefined) return [said];
      const { id, name, input } = call;
      const called = { type: 'function_call', call_id: id, name, arguments: JSON.stringify(input) };
      return text === '' ? [called] : [said, called];
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
        return { role: 'user', parts: [{ functionResponse: { id, name, response: { output: text } } }] };
      }
      const { text, call } = turn;
      return {
        role: 'model',
        parts: [
          ...(text === '' ? [] : [{ text }]),
          ...(call === undefined
            ? []
            : [{ functionCall: { id: call.id, name: call.name, args: call.input } }]),
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

/** Numbers from 0 to below 1, the same for the same seed (mulberry32). */
type Random = () => number;

function generator(seed: number): Random {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function pick<T>(random: Random, values: readonly T[]): T {
  return values[Math.floor(random() * values.length)] as T;
}

const nouns = words(
  'file folder module function parameter result test change value line path command error list name branch option type record index',
);
const verbs = words(
  'read write check move keep return rename find split join follow close open report count',
);
const adjectives = words('small first last empty shared open new old plain wrong given next whole short');

function words(text: string): readonly string[] {
  return text.split(' ');
}

function sentence(random: Random): string {
  const [verb = ''] = [pick(random, verbs)];
  const start = verb.charAt(0).toUpperCase() + verb.slice(1);
  const rest = Array.from(
    { length: 2 + Math.floor(random() * 3) },
    () => `the ${pick(random, adjectives)} ${pick(random, nouns)}`,
  );
  return `${start} ${rest.join(` and ${pick(random, verbs)} `)}.`;
}

/** Sentences of about so many characters; every third is followed by the separator. */
function prose(random: Random, length: number, separator: string): string {
  let text = '';
  for (let count = 1; text.length < length; count += 1)
    text += sentence(random) + (count % 3 === 0 ? separator : ' ');
  return text.trimEnd();
}

/** Instructions as agents get them: headings, lists, names in quotes and backticks. */
function markdown(random: Random, length: number): string {
  let text = '';
  while (text.length < length) {
    text += `# ${sentence(random)}\n\n${prose(random, 220, '\n')}\n\n`;
    for (let item = 0; item < 4; item += 1)
      text += `- ${sentence(random)} Say "${pick(random, nouns)}" for \`${pick(random, nouns)}.${pick(random, verbs)}\`.\n`;
    text += '\n';
  }
  return text;
}

function question(random: Random): string {
  return `${prose(random, 180, '\n\n')}\n\nSee src/${pick(random, nouns)}/${pick(random, nouns)}.ts, "${pick(random, verbs)}".`;
}

/** What agents say of the project in their first message: its rules, its folders, a file. */
function surroundings(random: Random, bytes: number): string {
  return `${markdown(random, bytes * 0.5)}\n\`\`\`\n${code(random, bytes * 0.5, false)}\n\`\`\`\n`;
}

/** Lines of a program of about so many bytes, as they stand in JSON. One line of 40 may have a character beyond ASCII. */
function code(random: Random, length: number, beyondAscii: boolean): string {
  const lines: string[] = [];
  let bytes = 0;
  while (bytes < length) {
    const line = '  '.repeat(Math.floor(random() * 4)) + pick(random, statements)(random);
    lines.push(
      beyondAscii && random() < 0.025 ? `${line} // ${pick(random, nouns)} – ${pick(random, nouns)}…` : line,
    );
    bytes += line.length + 6;
  }
  return lines.join('\n');
}

const statements: readonly ((random: Random) => string)[] = [
  (random) =>
    `const ${pick(random, nouns)} = await ${pick(random, verbs)}(${pick(random, nouns)}, { ${pick(random, nouns)}: true });`,
  (random) => `if (${pick(random, nouns)}.length === ${Math.floor(random() * 90)}) return undefined;`,
  (random) => `throw new Error("The ${pick(random, nouns)} has no ${pick(random, nouns)}.");`,
  (random) => `import { ${pick(random, verbs)} } from "../${pick(random, nouns)}/${pick(random, nouns)}.ts";`,
  (random) => `// ${sentence(random)}`,
  (random) => `for (const ${pick(random, nouns)} of ${pick(random, nouns)}.values()) {`,
  (random) =>
    `${pick(random, nouns)}.push(...${pick(random, nouns)}.map((one) => one.${pick(random, nouns)}));`,
  (random) => `export function ${pick(random, verbs)}(${pick(random, nouns)}: string): number {`,
  () => '}',
  () => '',
];

/** What a tool gave: a file with numbered lines, what a search found, or the output of a command. */
function result(random: Random, bytes: number): string {
  const text = code(random, Math.max(40, bytes * 1.02), true);
  const kind = random();
  if (kind < 0.4)
    return text
      .split('\n')
      .map((line, index) => `${String(index + 1).padStart(4)}\t${line}`)
      .join('\n');
  if (kind < 0.7) return `src/${pick(random, nouns)}.ts\n${text}`;
  return `$ npm test\n\n${text}\n\nexit code ${Math.floor(random() * 2)}`;
}

function callOf(random: Random): ToolCall {
  const id = `call_${Array.from({ length: 24 }, () => Math.floor(random() * 36).toString(36)).join('')}`;
  const path = `/srv/project/src/${pick(random, nouns)}/${pick(random, nouns)}.ts`;
  const name = pick(random, toolNames);
  const input =
    random() < 0.3
      ? { path, old_text: code(random, 160, false), new_text: code(random, 200, false) }
      : { path, pattern: `"${pick(random, nouns)}"`, limit: Math.floor(random() * 400) };
  return { id, name, input };
}

const toolNames = words(
  'read_file write_file edit_file list_folder search_text run_command fetch_page plan_steps ask_user start_task read_task stop_task',
);

/** A tool with about 1.7 KB of schema and a third as much about it. */
function toolNamed(random: Random, name: string): Tool {
  const properties = Object.fromEntries(
    [...nouns.slice(0, 5), ...verbs.slice(0, 2)].map((property) => [property, schema(random, 1)]),
  );
  return {
    name,
    description: prose(random, 550, '\n- '),
    parameters: {
      type: 'object',
      properties,
      required: Object.keys(properties).slice(0, 2),
      additionalProperties: false,
    },
  };
}

function schema(random: Random, depth: number): object {
  const description = prose(random, 80, ' ');
  const kind = random();
  if (depth > 0 && kind < 0.2) return { type: 'array', description, items: schema(random, depth - 1) };
  if (depth > 0 && kind < 0.35)
    return {
      type: 'object',
      description,
      properties: { [pick(random, nouns)]: schema(random, 0), [pick(random, verbs)]: schema(random, 0) },
    };
  if (kind < 0.5) return { type: 'string', description, enum: adjectives.slice(0, 5) };
  if (kind < 0.6) return { type: 'integer', description, minimum: 0, maximum: 1000 };
  if (kind < 0.7) return { type: 'boolean', description, default: false };
  return { type: 'string', description };
}

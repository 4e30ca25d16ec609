/** One text of a conversation. */
export interface Turn {
  readonly role: 'user' | 'assistant';
  readonly text: string;
}

/** Parts of a playground call, before a format encodes it. */
export interface Question {
  /** Texts before the prompt, the oldest first. */
  readonly turns: readonly Turn[];
  readonly model: string;
  readonly system: string;
  readonly prompt: string;
  readonly maxTokens: number | undefined;
  readonly temperature: number | undefined;
  readonly stream: boolean;
}

/** A request as a client of a format would send it. `headers` lack the API key, which `authorize` adds. */
export interface WireRequest {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

/** Text that one JSON value of a response adds for a reader. */
export interface Piece {
  readonly text?: string;
  readonly thinking?: string;
  /** Input and output tokens, as reported in the response. */
  readonly usage?: unknown;
  /** The sentence of an error. */
  readonly error?: string;
}

/** A client format of the playground. */
export interface Wire {
  readonly name: string;
  readonly title: string;
  request(question: Question): WireRequest;
  authorize(key: string): Readonly<Record<string, string>>;
  /** Reads an event's data, or a whole answer. */
  read(value: Json): Piece;
}

/** A JSON object with members of any shape, read with {@link at}. */
export type Json = Readonly<Record<string, unknown>>;

/** The value at a path of names and indices; undefined where the path ends early. */
export function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>(
    (inner, step) =>
      typeof inner === 'object' && inner !== null ? (inner as Record<string, unknown>)[step] : undefined,
    value,
  );
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '');
const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const joined = (values: unknown, pick: (value: unknown) => string): string => list(values).map(pick).join('');

/** Leaves out members that are undefined. */
const set = (members: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));

const messagesOf = (turns: readonly Turn[], prompt: string) =>
  [...turns, { role: 'user', text: prompt }].map((turn) => ({ role: turn.role, content: turn.text }));

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const errorOf = (value: Json): Pick<Piece, 'error'> => {
  const message = at(value, 'error', 'message');
  return typeof message === 'string' ? { error: message } : {};
};

const chatCompletions: Wire = {
  name: 'chat-completions',
  title: 'Chat completions',
  request: ({ turns, model, system, prompt, maxTokens, temperature, stream }) => ({
    path: '/v1/chat/completions',
    headers: {},
    body: set({
      model,
      messages: [
        ...(system === '' ? [] : [{ role: 'system', content: system }]),
        ...messagesOf(turns, prompt),
      ],
      max_completion_tokens: maxTokens,
      temperature,
      stream: stream || undefined,
      stream_options: stream ? { include_usage: true } : undefined,
    }),
  }),
  authorize: bearer,
  read: (value) => {
    const inner = at(value, 'choices', 0, 'delta') ?? at(value, 'choices', 0, 'message');
    return {
      text: text(at(inner, 'content')),
      thinking: text(at(inner, 'reasoning_content')) || text(at(inner, 'reasoning')),
      usage: value['usage'] ?? undefined,
      ...errorOf(value),
    };
  },
};

const messages: Wire = {
  name: 'messages',
  title: 'Messages',
  request: ({ turns, model, system, prompt, maxTokens, temperature, stream }) => ({
    path: '/v1/messages',
    headers: { 'anthropic-version': '2023-06-01' },
    body: set({
      model,
      max_tokens: maxTokens ?? 1024,
      system: system === '' ? undefined : system,
      messages: messagesOf(turns, prompt),
      temperature,
      stream: stream || undefined,
    }),
  }),
  authorize: (key) => ({ 'x-api-key': key }),
  read: (value) => ({
    text: text(at(value, 'delta', 'text')) || joined(value['content'], (block) => text(at(block, 'text'))),
    thinking:
      text(at(value, 'delta', 'thinking')) ||
      joined(value['content'], (block) => text(at(block, 'thinking'))),
    usage: value['usage'] ?? undefined,
    ...errorOf(value),
  }),
};

const generateContent: Wire = {
  name: 'generate-content',
  title: 'generateContent',
  request: ({ turns, model, system, prompt, maxTokens, temperature, stream }) => ({
    path: `/v1beta/models/${encodeURIComponent(model)}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    headers: {},
    body: set({
      contents: [...turns, { role: 'user', text: prompt }].map((turn) => ({
        role: turn.role === 'user' ? 'user' : 'model',
        parts: [{ text: turn.text }],
      })),
      systemInstruction: system === '' ? undefined : { parts: [{ text: system }] },
      generationConfig: set({ maxOutputTokens: maxTokens, temperature }),
    }),
  }),
  authorize: (key) => ({ 'x-goog-api-key': key }),
  read: (value) => {
    const parts = at(value, 'candidates', 0, 'content', 'parts');
    return {
      text: joined(parts, (part) => (at(part, 'thought') === true ? '' : text(at(part, 'text')))),
      thinking: joined(parts, (part) => (at(part, 'thought') === true ? text(at(part, 'text')) : '')),
      usage: value['usageMetadata'],
      ...errorOf(value),
    };
  },
};

const responses: Wire = {
  name: 'responses',
  title: 'Responses',
  request: ({ turns, model, system, prompt, maxTokens, temperature, stream }) => ({
    path: '/v1/responses',
    headers: {},
    body: set({
      model,
      instructions: system === '' ? undefined : system,
      input: turns.length === 0 ? prompt : messagesOf(turns, prompt),
      max_output_tokens: maxTokens,
      temperature,
      store: false,
      stream: stream || undefined,
    }),
  }),
  authorize: bearer,
  read: (value) => {
    const type = text(value['type']);
    const delta = text(value['delta']);
    if (type === 'response.output_text.delta') return { text: delta };
    if (type.startsWith('response.reasoning') && type.endsWith('.delta')) return { thinking: delta };
    if (type === 'error') return { error: text(value['message']) };
    const failed = at(value, 'response', 'error', 'message');
    if (typeof failed === 'string') return { error: failed };
    if (type !== '') return { usage: at(value, 'response', 'usage') ?? undefined };
    const contents = (kind: string, member: string): string =>
      joined(value['output'], (item) =>
        at(item, 'type') === kind ? joined(at(item, member), (part) => text(at(part, 'text'))) : '',
      );
    return {
      text: contents('message', 'content'),
      thinking: contents('reasoning', 'summary'),
      usage: value['usage'] ?? undefined,
      ...errorOf(value),
    };
  },
};

/** The client formats that there are to choose from. */
export const wires: readonly Wire[] = [chatCompletions, messages, generateContent, responses];

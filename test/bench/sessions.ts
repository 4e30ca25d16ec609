/**
 * Sessions of a coding agent as they grow, and simpler ones, made by a seeded generator so that each run measures the same bytes. The
 * structure is that of real agents (tools with long schemas, results full of code, few characters beyond ASCII); every text is made in
 * `texts.ts`.
 */
import {
  code,
  generator,
  markdown,
  nouns,
  pick,
  prose,
  toolNames,
  toolNamed,
  verbs,
  type Random,
} from './texts.ts';
import { idStyles, type IdStyle } from './tool-ids.ts';

/** History before a call, independent of the format. */
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

/**
 * The inputs by name: what each is about, and how many calls with it are made at once. Sizes are of the chat-completions body: a few
 * percent more or less in other formats.
 */
export const inputs = {
  small: { title: 'small chat, 1 KB with escaped text', concurrency: 64 },
  plain: { title: 'plain request, 100 KB without escapes', concurrency: 32 },
  turn1: { title: 'agent turn 1, 55 KB, 12 tools', concurrency: 32 },
  turn30: { title: 'agent turn 30, 250 KB, 77 messages', concurrency: 16 },
  turn100: { title: 'agent turn 100, 800 KB, 285 messages', concurrency: 8 },
} as const;

/** The name of an input. */
export type InputName = keyof typeof inputs;

const made = new Map<string, Session>();

/** A session, the same in each process. Its style of ids changes nothing in its calls, and the length of their results by what ids take. */
export function sessionOf(name: InputName, ids: IdStyle = 'openai'): Session {
  const key = `${name} ${ids}`;
  let session = made.get(key);
  if (session === undefined) {
    session = makers[name](ids);
    made.set(key, session);
  }
  return session;
}

const makers: Readonly<Record<InputName, (ids: IdStyle) => Session>> = {
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
  turn1: (ids) => agentSession(1, 55_000, ids),
  turn30: (ids) => agentSession(77, 250_000, ids),
  turn100: (ids) => agentSession(285, 800_000, ids),
};

/** A session of so many messages, the instructions apart, in about so many bytes. The number is odd: the last is a tool's result, or the user's. */
function agentSession(messages: number, bytes: number, ids: IdStyle): Session {
  const random = generator(3);
  const idRandom = generator(5);
  let calls = 0;
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
    const called = callOf(random);
    const call = { id: idStyles[ids](idRandom, called.name, calls), ...called };
    calls += 1;
    weights.push(0.1 + random() ** 2);
    turns.push({ role: 'assistant', text: random() < 0.6 ? prose(random, 140, ' ') : '', call });
    turns.push({ role: 'tool', id: call.id, name: call.name, text: '' });
  }
  // Results take what the rest leaves.
  const left = bytes - JSON.stringify({ instructions, tools, turns }).length;
  const share = left / weights.reduce((sum, weight) => sum + weight, 0);
  const filled = turns.map((turn) =>
    turn.role === 'tool' ? { ...turn, text: result(random, share * (weights.shift() ?? 0)) } : turn,
  );
  return { instructions, tools, turns: filled };
}

function question(random: Random): string {
  return `${prose(random, 180, '\n\n')}\n\nSee src/${pick(random, nouns)}/${pick(random, nouns)}.ts, "${pick(random, verbs)}".`;
}

/** Returns the description of a project in an agent's first message: rules, folders, a file. */
function surroundings(random: Random, bytes: number): string {
  return `${markdown(random, bytes * 0.5)}\n\`\`\`\n${code(random, bytes * 0.5, false)}\n\`\`\`\n`;
}

/** Returns the result of a tool: a file with numbered lines, search results, or the output of a command. */
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

function callOf(random: Random): Omit<ToolCall, 'id'> {
  const path = `src/${pick(random, nouns)}/${pick(random, nouns)}.ts`;
  const name = pick(random, toolNames);
  const input =
    random() < 0.3
      ? { path, old_text: code(random, 160, false), new_text: code(random, 200, false) }
      : { path, pattern: `"${pick(random, nouns)}"`, limit: Math.floor(random() * 400) };
  return { name, input };
}

/** A program of about so many bytes, as models write them. */
export function sourceText(bytes: number): string {
  return code(generator(4), bytes, false);
}

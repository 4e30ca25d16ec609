/** Texts of the bench's clients: prose, instructions, programs, tools with their schemas. The same seed gives the same texts. */
import type { Tool } from './sessions.ts';

/** Numbers from 0 to below 1, the same for the same seed (mulberry32). */
export type Random = () => number;

/** A source of {@link Random} numbers. */
export function generator(seed: number): Random {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** One of them. */
export function pick<T>(random: Random, values: readonly T[]): T {
  return values[Math.floor(random() * values.length)] as T;
}

/** Names for everything. */
export const nouns = words(
  'file folder module function parameter result test change value line path command error list name branch option type record index',
);
/** What is done with them. */
export const verbs = words(
  'read write check move keep return rename find split join follow close open report count',
);
const adjectives = words('small first last empty shared open new old plain wrong given next whole short');

function words(text: string): readonly string[] {
  return text.split(' ');
}

function sentence(random: Random): string {
  const verb = pick(random, verbs);
  const start = verb.charAt(0).toUpperCase() + verb.slice(1);
  const rest = Array.from(
    { length: 2 + Math.floor(random() * 3) },
    () => `the ${pick(random, adjectives)} ${pick(random, nouns)}`,
  );
  return `${start} ${rest.join(` and ${pick(random, verbs)} `)}.`;
}

/** Sentences of about so many characters; every third is followed by the separator. */
export function prose(random: Random, length: number, separator: string): string {
  let text = '';
  for (let count = 1; text.length < length; count += 1)
    text += sentence(random) + (count % 3 === 0 ? separator : ' ');
  return text.trimEnd();
}

/** Instructions as agents get them: headings, lists, names in quotes and backticks. */
export function markdown(random: Random, length: number): string {
  let text = '';
  while (text.length < length) {
    text += `# ${sentence(random)}\n\n${prose(random, 220, '\n')}\n\n`;
    for (let item = 0; item < 4; item += 1)
      text += `- ${sentence(random)} Say "${pick(random, nouns)}" for \`${pick(random, nouns)}.${pick(random, verbs)}\`.\n`;
    text += '\n';
  }
  return text;
}

/** Lines of a program of about so many bytes, as they stand in JSON. One line of 40 may have a character beyond ASCII. */
export function code(random: Random, length: number, beyondAscii: boolean): string {
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

/** The tools of the agent. */
export const toolNames = words(
  'read_file write_file edit_file list_folder search_text run_command fetch_page plan_steps ask_user start_task read_task stop_task',
);

/** A tool with about 1.7 KB of schema and a third as much about it. */
export function toolNamed(random: Random, name: string): Tool {
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

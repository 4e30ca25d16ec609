/** Forms in which a run-time entry names a secret that is kept elsewhere. */
import { isMembers } from './json-schema.ts';

/** Member of the entry, title, and an example of a name. */
const secretForms = [
  ['env', 'Environment variable', 'OPENAI_KEY'],
  ['file', 'File', '/run/secrets/openai'],
  ['from', 'Secret manager', 'vault:secret/llm/openai#key'],
] as const;

/** Places that a secret can be read from, with their titles; `text` stands for a secret that is typed. */
export const secretSources = [
  ['text', 'Text'] as const,
  ...secretForms.map(([form, title]) => [form, title] as const),
];

/** A reference to a secret. */
interface NamedSecret {
  readonly form: (typeof secretForms)[number][0];
  readonly title: string;
  readonly example: string;
  readonly name: string;
}

/** Returns the reference that a value is; undefined for any other value. */
export function namedSecret(value: unknown): NamedSecret | undefined {
  const [[member, name] = [], ...others] = isMembers(value) ? Object.entries(value) : [];
  const [form, title, example] = secretForms.find(([one]) => one === member) ?? [];
  if (form === undefined || others.length > 0 || typeof name !== 'string') return undefined;
  return { form, title, example, name };
}

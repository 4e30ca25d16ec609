import type { RefusedMember } from 'sluice';

/** Returns the option of a channel that removes a member from all requests of a model, as it is written in the config. */
export function traitOf(model: string, { path, as, beside }: RefusedMember): string {
  const parts = Object.entries({ path, as, beside }).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}: ${quoted(value)}`],
  );
  const member = parts.length === 1 ? quoted(path) : `{ ${parts.join(', ')} }`;
  return `traits: { ${quoted(model)}: { refusedMembers: [${member}] } }`;
}

function quoted(text: string): string {
  return `'${text.replaceAll(/[\\']/g, '\\$&')}'`;
}

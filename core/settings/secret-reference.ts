/** References to secrets: `vault:llm/openai?version=3#key`, and the helper that puts one into a config file. */

/** A reference, taken apart. */
export interface SecretReference {
  /** The whole reference, as it is shown. */
  readonly text: string;
  readonly source: string;
  readonly name: string;
  readonly version?: string;
  readonly field?: string;
}

/** Longest reference, in characters. */
const longest = 1_024;

const form =
  /^(?<source>[a-z][a-z0-9-]{0,31}):(?<name>[^\s\p{C}?#<>]{1,512})(?:\?version=(?<version>[\w.+=/-]{1,128}))?(?:#(?<field>[^\p{C}<>#]{1,256}))?$/u;

/** Returns the parts of a reference; undefined for other text. Rejects a segment `..`, which could leave the allowed paths. */
export function parseSecretReference(text: string): SecretReference | undefined {
  if (text.length > longest) return undefined;
  const { source, name, version, field } = form.exec(text)?.groups ?? {};
  if (source === undefined || name === undefined || /(?:^|[/\\])\.{1,2}(?:[/\\]|$)|%/.test(name))
    return undefined;
  return {
    text,
    source,
    name,
    ...(version === undefined ? {} : { version }),
    ...(field === undefined ? {} : { field }),
  };
}

/** Finds the references in the values of a config file. No reference has angle brackets. */
const mark = /sluice-secret<([^<>]{1,1024})>/g;

/**
 * Names a secret by reference: `SOURCE:NAME?version=VERSION#FIELD`, of which version and field may be left out. A plugin offers the source;
 * `env` and `file` are always there. The gateway reads the secret at each start and reload, and reloads when it has changed. A reference may stand wherever
 * an option holds a secret, also within a text. Throws for a text that is no reference.
 *
 * @example
 * openai({ key: secretFrom('vault:llm/openai#key') })
 */
export function secretFrom(reference: string): string {
  if (parseSecretReference(reference) === undefined)
    throw new Error(
      `"${reference.slice(0, 200)}" is not a reference to a secret. Write secretFrom('SOURCE:NAME#FIELD'), for example secretFrom('vault:llm/first#key').`,
    );
  return `sluice-secret<${reference}>`;
}

/** Returns the references in a text of a config file. */
export function referencesIn(text: string): readonly string[] {
  if (!text.includes('sluice-secret<')) return [];
  return [...text.matchAll(mark)].flatMap(([, reference]) => (reference === undefined ? [] : [reference]));
}

/** Returns a text with each reference replaced. */
export function replaceReferences(text: string, replace: (reference: string) => string): string {
  return text.replaceAll(mark, (_, reference: string) => replace(reference));
}

/** Refusals of changes of the run-time configuration. */
import { GatewayError } from '../../sdk/errors.ts';
import type { EntryName, RuntimeEntry } from '../../state/runtime-config/index.ts';
import { describeEntry } from './merge.ts';

/** A problem of an entry, with the path of its option where the sentence names one: `timeouts.idle`. */
export type EntryProblem =
  | { readonly option: string; readonly message: string }
  | { readonly message: string };

/** Sentences that name an option: those of schemas, and those about an option that is not there. */
const aboutOption = [
  /: option "(?<option>[^"]+)": (?<message>.+)$/s,
  /": (?<message>(?<option>\w+) is (?:missing|empty)\..*)$/s,
];

/** Returns a sentence about an entry with the option that it is about. */
export function problemOf(sentence: string): EntryProblem {
  for (const pattern of aboutOption) {
    const { option, message } = pattern.exec(sentence)?.groups ?? {};
    if (option !== undefined && message !== undefined) return { option, message: capital(message) };
  }
  return { message: sentence };
}

/** Returns the error for problems of a configuration. Its details have them one by one. */
export function refused(sentences: readonly string[]): GatewayError {
  const shown = sentences.slice(0, 20);
  return new GatewayError('invalid_value', shown.join(' '), {
    param: 'value',
    details: { problems: shown.map((sentence) => ({ ...problemOf(sentence) })) },
  });
}

/** Returns the error for a hidden secret that stands for none. */
export function noSecret(path: string): Error {
  return new GatewayError('invalid_value', `There is no stored secret for ${path}. Send its text.`, {
    param: `value.${path}`,
  });
}

/** Returns the error for a hidden secret that a change would send elsewhere. */
export function sentElsewhere(path: string): Error {
  return new GatewayError(
    'invalid_value',
    `The secret at ${path} was stored for another destination. Send its text again.`,
    { param: `value.${path}` },
  );
}

/** Returns the 412 for something that somebody else has changed. */
export function changedMeanwhile(what: string): GatewayError {
  return new GatewayError('conflict', `${what} was changed since you read it. Read it again, and retry.`, {
    status: 412,
  });
}

/** Returns the entry of a name. Throws 404 without one, and 412 where it has another version. */
export function current(entries: readonly RuntimeEntry[], named: EntryName, version: number): RuntimeEntry {
  const found = entries.find(({ kind, name }) => kind === named.kind && name === named.name);
  if (found === undefined)
    throw new GatewayError('not_found', `There is no ${describeEntry(named).replace('the ', '')}.`);
  if (found.version !== version) throw changedMeanwhile(capital(describeEntry(named)));
  return found;
}

/** Returns kind and name alone. */
export function nameOf({ kind, name }: EntryName): EntryName {
  return { kind, name };
}

/** Returns a text that begins a sentence. */
export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Registers the secrets of this process, and masks them in text. */
import { SecretSearch, shortest } from './secret-search.ts';

/** Secrets of this process, in the forms in which text may contain them, and how often each must be forgotten: without end for most. */
const known = new Map<string, number>();
const search = new SecretSearch();

function hideForms(value: string, times: number): void {
  for (const form of formsOf(value)) {
    known.set(form, (known.get(form) ?? 0) + times);
    search.add(form);
  }
}

/**
 * Masks a secret in the log and in errors from now on. Texts of fewer than 8 characters are not masked, because they occur in words.
 *
 * @example
 * hideSecret(token);
 */
export function hideSecret(value: string): void {
  hideForms(value, Infinity);
}

/** Does the same as {@link hideSecret} for a secret that ends while the process runs, until {@link forgetSecret} has been called as often. */
export function hideEndingSecret(value: string): void {
  hideForms(value, 1);
}

/**
 * Takes back one call of {@link hideEndingSecret}, because the secret has ended: otherwise the secrets of a process would grow with the time that
 * it runs. A text that is a secret for another reason stays masked.
 */
export function forgetSecret(value: string): void {
  for (const form of formsOf(value)) {
    const left = (known.get(form) ?? 0) - 1;
    if (left > 0) known.set(form, left);
    else {
      known.delete(form);
      search.delete(form);
    }
  }
}

/** Returns a secret as it is, in the JSON of a line, and in JSON within the text of a line; nothing for one that is too short. */
function formsOf(value: string): ReadonlySet<string> {
  if (value.length < shortest) return new Set();
  const inLine = JSON.stringify(value).slice(1, -1);
  return new Set([value, inLine, JSON.stringify(inLine).slice(1, -1)]);
}

/** Replaces every secret that was hidden with a mask. */
export function maskKnownSecrets(text: string, mask = '…'): string {
  return search.mask(text, mask);
}

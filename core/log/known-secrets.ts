/** Secrets of this process, in the forms in which text may contain them. */
const known = new Set<string>();

/**
 * Masks a secret in the log and in errors from now on. Texts of fewer than 8 characters are not masked, because they occur in words.
 *
 * @example
 * hideSecret(token);
 */
export function hideSecret(value: string): void {
  if (value.length < 8) return;
  for (const form of formsOf(value)) known.add(form);
}

/** Masks a secret no longer, because it has ended: otherwise the secrets of a process would grow with the time that it runs. */
export function forgetSecret(value: string): void {
  for (const form of formsOf(value)) known.delete(form);
}

/** A secret as it is, in the JSON of a line, and in JSON within the text of a line. */
function formsOf(value: string): readonly string[] {
  const inLine = JSON.stringify(value).slice(1, -1);
  return [value, inLine, JSON.stringify(inLine).slice(1, -1)];
}

/** Replaces every secret that was hidden with a mask. */
export function maskKnownSecrets(text: string, mask = '…'): string {
  let masked = text;
  for (const secret of known) if (masked.includes(secret)) masked = masked.replaceAll(secret, mask);
  return masked;
}

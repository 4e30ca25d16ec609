/** Secrets of this process, in the forms in which text may contain them. */
const known = new Set<string>();

/** Masks a secret, from now on, in the log and in errors. Texts of fewer than 8 characters are left, because they occur in words. */
export function hideSecret(value: string): void {
  if (value.length < 8) return;
  // As it is, in the JSON of a line, and in JSON within the text of a line.
  const inLine = JSON.stringify(value).slice(1, -1);
  for (const form of [value, inLine, JSON.stringify(inLine).slice(1, -1)]) known.add(form);
}

/** Replaces every secret that was hidden with a mask. */
export function maskKnownSecrets(text: string, mask = '…'): string {
  let masked = text;
  for (const secret of known) if (masked.includes(secret)) masked = masked.replaceAll(secret, mask);
  return masked;
}

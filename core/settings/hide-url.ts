/** Masks the secrets of addresses in the log. Loads neither schemas nor the log itself, which threads that read a database do without. */
import { hideSecret } from '../log/known-secrets.ts';
import { secretName } from './secret-name.ts';

/** Masks, from now on, the password and the secret parameters of an address. */
export function hideUrl(address: string): void {
  if (!URL.canParse(address)) {
    // In an invalid address all text between the scheme and the host may be a password.
    const [, password] = /^[a-z][a-z0-9+.-]*:\/\/[^/@]*?:([^/]*)@/i.exec(address) ?? [];
    if (password !== undefined) {
      hideSecret(password);
      hideSecret(decoded(password));
    }
    return;
  }
  const url = new URL(address);
  hideSecret(url.password);
  hideSecret(decoded(url.password));
  if (url.password !== '')
    hideSecret(Buffer.from(`${decoded(url.username)}:${decoded(url.password)}`).toString('base64'));
  for (const [name, entry] of url.searchParams) if (secretName.test(name)) hideSecret(entry);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

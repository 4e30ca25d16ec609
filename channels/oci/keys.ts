/** Reads keys that sign requests to Oracle Cloud Infrastructure: private keys in PEM, and session tokens. */
import { createPrivateKey, type KeyObject } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { isObject, parseObject } from 'sluice';
import type { OciKey } from './signature.ts';

/** A key that signs until it ends; `expires` is in milliseconds since 1970, Infinity for one that does not. */
export interface OciSigner extends OciKey {
  readonly expires: number;
}

/** Returns a token of a session, and the key that it is bound to. Throws where it has ended. */
export function ofToken(text: string, privateKey: KeyObject): OciSigner {
  const token = text.trim();
  const { exp } = parseObject(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) ?? {};
  if (typeof exp !== 'number') throw new Error('its session token is not a JWT with an expiry');
  const expires = exp * 1000;
  if (expires <= Date.now())
    throw new Error(`its session token has ended, ${new Date(expires).toISOString()}`);
  return { keyId: `ST$${token}`, privateKey, expires };
}

/** Parses an RSA private key. The errors of OpenSSL name neither the key nor its passphrase. */
export function privateKeyOf(pem: string, passphrase: string | undefined): KeyObject {
  const key = createPrivateKey({ key: pem, ...(passphrase === undefined ? {} : { passphrase }) });
  if (key.asymmetricKeyType !== 'rsa') throw new Error(`its key is of the type ${key.asymmetricKeyType}`);
  return key;
}

/** Reads a file. Rejects with an error that describes the purpose of the file. */
export async function readText(what: string, path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    const code = isObject(error) ? error['code'] : undefined;
    throw new Error(`${what} cannot be read (${path}: ${String(code ?? error)})`, { cause: error });
  }
}

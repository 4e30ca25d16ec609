import { createHmac } from 'node:crypto';

/** Returns a JSON Web Token signed with a shared secret (HS256). */
export function jwt(claims: Readonly<Record<string, string | number>>, secret: string): string {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const text = `${part({ alg: 'HS256', typ: 'JWT' })}.${part(claims)}`;
  return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`;
}

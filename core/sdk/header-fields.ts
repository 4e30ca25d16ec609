/** Rules for HTTP header fields: connection-specific headers, and names and values that Node can send. */
// An import of node:http would load the second HTTP client that it exports: see core/upstream/node-http.ts.
const { validateHeaderName, validateHeaderValue } = process.getBuiltinModule('node:http');

/** Headers that belong to the connection or to the framing of a message, in lower case: the sender of the message writes them. */
export const connectionHeaders: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** Returns true for a header of a request that its sender may choose: not for `host`, nor for those of the connection. */
export function isRequestHeader(name: string): boolean {
  const lower = name.toLowerCase();
  return lower !== 'host' && !connectionHeaders.has(lower);
}

/** Returns true for a name and a value that HTTP can carry. */
export function isSendable(name: string, value: string): boolean {
  try {
    validateHeaderName(name);
    validateHeaderValue(name, value);
    return true;
  } catch {
    return false;
  }
}

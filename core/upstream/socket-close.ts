/** Close codes, close reasons and compression options of WebSockets, for clients and providers. */
import { redact } from '../formats/_shared/redact.ts';

/** Returns a close code that may be sent: codes that only report a broken connection, and invalid ones, become 1011. */
export function sendableCode(code: number): number {
  const isNamed = code >= 1000 && code <= 1014 && code !== 1004 && code !== 1005 && code !== 1006;
  return isNamed || (code >= 3000 && code <= 4999) ? code : 1011;
}

/** Returns a close reason without keys and addresses, cut to the size of a close frame. */
export function sendableReason(reason: Buffer | string): string {
  let text = redact(reason.toString());
  while (Buffer.byteLength(text) > 123) text = text.slice(0, -1);
  return text;
}

/** Returns the close code for an error of `ws` about an invalid frame. */
export function faultCode({ code }: NodeJS.ErrnoException): number {
  switch (code) {
    case 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH':
    case 'WS_ERR_UNSUPPORTED_DATA_PAYLOAD_LENGTH':
    case 'WS_ERR_TOO_MANY_BUFFERED_PARTS':
      return 1009;
    case 'WS_ERR_INVALID_UTF8':
      return 1007;
    default:
      return code?.startsWith('WS_ERR_') === true ? 1002 : 1011;
  }
}

/** Options of permessage-deflate: without context takeover, so that a session keeps no compression windows in memory. */
export const compression = {
  serverNoContextTakeover: true,
  clientNoContextTakeover: true,
  threshold: 1024,
  zlibDeflateOptions: { level: 3 },
} as const;

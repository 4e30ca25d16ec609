/**
 * Splits `data:image/png;base64,…` into its type and its bytes in base64. Returns undefined for any other URL. A data URL that is not
 * base64 is re-encoded.
 *
 * @example
 * const image = parseDataUrl(url); // { mimeType: 'image/png', data: 'iVBORw…' }
 */
export function parseDataUrl(url: string): { readonly mimeType: string; readonly data: string } | undefined {
  if (!/^data:/i.test(url)) return undefined;
  const comma = url.indexOf(',');
  if (comma < 0) return undefined;
  const head = url.slice(5, comma);
  const mimeType = head.split(';')[0] || 'text/plain';
  const rest = url.slice(comma + 1);
  if (/;\s*base64\s*$/i.test(head)) return { mimeType, data: rest };
  try {
    return { mimeType, data: Buffer.from(decodeURIComponent(rest)).toString('base64') };
  } catch {
    return undefined;
  }
}

/**
 * Returns a data URL of bytes in base64, the inverse of `parseDataUrl`. `image/jpg` becomes `image/jpeg`.
 *
 * @example
 * const url = toDataUrl('image/png', base64);
 */
export function toDataUrl(mimeType: string, data: string): string {
  return `data:${officialType(mimeType)};base64,${data}`;
}

/** Returns the registered MIME type, because many clients send `image/jpg`, which is not one. */
export function officialType(mimeType: string): string {
  return mimeType.toLowerCase() === 'image/jpg' ? 'image/jpeg' : mimeType;
}

const signatures: readonly (readonly [string, string])[] = [
  ['iVBORw0KGgo', 'image/png'],
  ['/9j/', 'image/jpeg'],
  ['R0lGOD', 'image/gif'],
  ['UklGR', 'image/webp'],
  ['JVBERi0', 'application/pdf'],
];

/** Returns the type that the first bytes of base64 data show; undefined when they show none. */
export function sniffBase64(data: string): string | undefined {
  return signatures.find(([start]) => data.startsWith(start))?.[1];
}

/** An answer of the admin API that is JSON already. */
export class JsonBytes {
  readonly bytes: Buffer;

  constructor({ buffer, byteOffset, byteLength }: Uint8Array) {
    this.bytes = Buffer.from(buffer, byteOffset, byteLength);
  }
}

/** Returns an object as JSON. Members that are JSON already are copied; those that are undefined are left out. */
export function jsonOf(members: Readonly<Record<string, unknown>>): JsonBytes {
  const parts: Buffer[] = [];
  let text = '{';
  let separator = '';
  for (const [name, value] of Object.entries(members)) {
    if (value === undefined) continue;
    text += `${separator}${JSON.stringify(name)}:`;
    separator = ',';
    if (value instanceof JsonBytes) {
      parts.push(Buffer.from(text), value.bytes);
      text = '';
    } else text += JSON.stringify(value);
  }
  return new JsonBytes(Buffer.concat([...parts, Buffer.from(`${text}}`)]));
}

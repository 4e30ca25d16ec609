/** Adds and replaces text fields of a multipart form while it streams. */
import { Readable } from 'node:stream';
import type { BodyStream } from 'sluice';

/** Changes to a form. */
export interface FormEdits {
  /** Texts that it has no part for, by name: they stand in front. */
  readonly added?: Readonly<Record<string, string>>;
  /** Texts of form fields by name, each with the value that the provider expects in its place. */
  readonly changed?: Readonly<Record<string, readonly [text: string, there: string]>>;
}

/**
 * Returns the changed form. `type` is its content type. At most the head of a part with one of these texts is buffered, so that a file in
 * the form may have any length.
 */
export function withTexts(
  upload: BodyStream,
  type: string,
  { added = {}, changed = {} }: FormEdits,
): BodyStream {
  const [, quoted, plain] = /;\s*boundary=(?:"([^"\\]{1,200})"|([^\s;"]{1,200}))/i.exec(type) ?? [];
  const boundary = quoted ?? plain;
  if (boundary === undefined) return upload;
  const head = Object.entries(added)
    .map(
      ([name, text]) => `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${text}\r\n`,
    )
    .join('');
  const edits = Object.entries(changed).map(([name, [text, there]]) => {
    const before = `name="${name}"\r\n\r\n`;
    const behind = `\r\n--${boundary}`;
    return { from: Buffer.from(before + text + behind), to: Buffer.from(before + there + behind) };
  });
  async function* edited(): AsyncGenerator<Buffer> {
    if (head !== '') yield Buffer.from(head);
    let pending = edits;
    let held: Buffer = Buffer.alloc(0);
    for await (const piece of upload.bytes as AsyncIterable<Buffer>) {
      let bytes = held.length === 0 ? piece : Buffer.concat([held, piece]);
      for (const edit of pending) {
        const at = bytes.indexOf(edit.from);
        if (at < 0) continue;
        bytes = Buffer.concat([bytes.subarray(0, at), edit.to, bytes.subarray(at + edit.from.length)]);
        pending = pending.filter((one) => one !== edit);
      }
      const longest = pending.reduce((most, { from }) => Math.max(most, from.length - 1), 0);
      const sure = Math.max(0, bytes.length - longest);
      if (sure > 0) yield bytes.subarray(0, sure);
      held = bytes.subarray(sure);
    }
    if (held.length > 0) yield held;
  }
  return { bytes: Readable.from(edited(), { objectMode: false, highWaterMark: 64 * 1024 }) };
}

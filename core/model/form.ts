/** Multipart forms: their parts, uploaded files, and access to files by name. */
import type { Readable } from 'node:stream';

/**
 * A file that a client sent. It lasts as long as its call.
 *
 * @example
 * const text = Buffer.concat(await request.file.open().toArray()).toString();
 */
export interface Upload {
  /** As the client named it; may be empty. */
  readonly filename: string;
  /** As the client claimed; what the bytes are is another question. */
  readonly mimeType: string;
  /** Bytes. */
  readonly size: number;
  /** The first bytes, at most 64: enough to see what kind of file it is. */
  readonly head: Buffer;
  /** Reads it from its beginning; as often as is wanted, since another channel may have to be sent the same. */
  open(): Readable;
}

/** Names and media type of a part of a form. */
export interface PartHead {
  readonly name: string;
  /** Without folders; undefined for a text. */
  readonly filename: string | undefined;
  /** Media type in lower case, without parameters. */
  readonly mimeType: string;
}

/** One part of a form, in the order in which they were sent. Names repeat, and may end with `[]`. */
export type FormPart =
  | { readonly name: string; readonly value: string }
  | { readonly name: string; readonly file: Upload };

/**
 * The parts of a `multipart/form-data` body, in the order in which they are sent.
 *
 * @example
 * const form: Form = [{ name: 'model', value: model }, { name: 'file', file: request.file }];
 */
export type Form = readonly FormPart[];

/** The files of a form under one name, also where it is spelled with brackets (`image[]`, `image[0]`). */
export function filesOf(form: Form | undefined, name: string): readonly Upload[] {
  return (form ?? []).flatMap((part) => ('file' in part && plainName(part.name) === name ? [part.file] : []));
}

/** A part's name without the brackets that some clients put behind it. */
export function plainName(name: string): string {
  return name.replace(/\[\d*\]$/, '');
}

import { Readable } from 'node:stream';
import type { Upload } from '../../model/form.ts';

/** Number of bytes from which the type of a file is detected. */
const headSize = 64;

/**
 * Returns bytes in base64 as a file of a form.
 *
 * @example
 * const image = uploadOf({ data: block.data, mimeType: 'image/png' });
 */
export function uploadOf({ data, mimeType }: { readonly data: string; readonly mimeType: string }): Upload {
  const bytes = Buffer.from(data, 'base64');
  return {
    filename: `reference.${mimeType.split('/')[1]?.replace(/[^a-z0-9]/gi, '') ?? 'bin'}`,
    mimeType,
    size: bytes.length,
    head: bytes.subarray(0, headSize),
    open: () => Readable.from([bytes], { objectMode: false }),
  };
}

import { Readable } from 'node:stream';
import type { RouteParams } from '../../core/sdk/format.ts';
import type { FormPart, Upload } from '../../core/model/form.ts';
import type { JsonObject } from '../../core/model/json.ts';

/** A file of a form, as the server hands it to a codec. `size` may lie. */
export function uploadOf(bytes: Buffer, filename: string, mimeType: string, size = bytes.length): Upload {
  return { filename, mimeType, size, head: bytes.subarray(0, 64), open: () => Readable.from([bytes]) };
}

/** A form with these fields, one part for each value of a list, and these files behind them. */
export function formOf(fields: JsonObject, files: readonly FormPart[]): RouteParams {
  const texts = Object.entries(fields).flatMap(([name, value]) =>
    [value].flat().map((one) => ({ name: Array.isArray(value) ? `${name}[]` : name, value: String(one) })),
  );
  return { form: [...texts, ...files] };
}

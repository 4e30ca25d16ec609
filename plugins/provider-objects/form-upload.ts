import { Readable } from 'node:stream';
import { GatewayError, type BodyStream } from 'sluice';
import type { RequestBody } from 'sluice/internal';
import { boundaryOf, FormScan } from './multipart.ts';
import type { FormReferences } from './form-references.ts';
import { RequestLines, type RequestedLines } from './request-lines.ts';

/** How much of a file is waited for before its place is chosen, in bytes: a line that names a model stands in that. */
const lookAhead = 256 * 1024;

/** A form with one file that goes to a provider while it comes from a client. */
export interface FormUpload {
  /** The model of the file's first line, where that is a request of a batch. */
  readonly model: string | undefined;
  readonly upload: BodyStream;
  readonly headers: Readonly<Record<string, string>>;
  /** What has been found out when all of it has gone by. */
  end(): RequestedLines | undefined;
  /** Why the form was cut, where that was done here: a limit, or something that is no form. */
  readonly wrong: unknown;
}

/** The longest text between the files of a form, in bytes. */
const longestText = 64 * 1024;

/**
 * Begins to read a form of at most so many bytes, with its file for `lines` and its text fields for `references`, and gives it when it is
 * known where it may go. Throws what is wrong with it by then.
 */
export async function beginUpload(
  body: RequestBody,
  lines: RequestLines,
  references: FormReferences,
  limit: number,
): Promise<FormUpload> {
  const boundary = boundaryOf(body.type);
  const source = body.stream(limit).iterator({ destroyOnReturn: false }) as AsyncIterator<Buffer>;
  const scan = new FormScan(boundary, partsOf(lines, references));
  let wrong: unknown;
  let length = 0;
  const take = async (): Promise<Buffer | undefined> => {
    const { done, value } = await source.next();
    try {
      if (done === true) {
        scan.finish();
        await references.settled();
        return undefined;
      }
      length += value.length;
      if (length > limit)
        throw new GatewayError('request_too_large', `The request body is larger than ${limit} bytes.`);
      scan.push(value);
      await references.settled();
      return value;
    } catch (error) {
      wrong = error;
      throw error;
    }
  };
  const early: Buffer[] = [];
  let hasEnded = false;
  const mustWait = (): boolean => !lines.hasBegun && length < lookAhead && !hasEnded;
  while (mustWait()) {
    // oxlint-disable-next-line no-await-in-loop -- one piece after the other
    const piece = await take();
    if (piece === undefined) hasEnded = true;
    else early.push(piece);
  }
  async function* pieces(): AsyncGenerator<Buffer> {
    try {
      yield* early.splice(0);
      for (let piece = hasEnded ? undefined : await take(); piece !== undefined; piece = await take())
        yield piece;
    } finally {
      // Who is still sending is read on by whoever answers.
      await source.return?.();
    }
  }
  return {
    model: lines.model,
    headers: { 'content-type': body.type },
    upload: {
      bytes: Readable.from(pieces(), { objectMode: false, highWaterMark: 64 * 1024 }),
      ...(body.length === undefined ? {} : { length: body.length }),
    },
    end: () => lines.end(),
    get wrong() {
      return wrong;
    },
  };
}

/** Sends a form. Rejects with the reason why the form was cut here, if it was, in place of the error that the cut led to. */
export async function sendForm<Answer>(
  form: FormUpload,
  send: (form: FormUpload) => Promise<Answer>,
): Promise<Answer> {
  try {
    return await send(form);
  } catch (error) {
    form.upload.bytes.destroy();
    throw form.wrong ?? error;
  }
}

/** Passes the file of a form to its reader. One file, and each text once, so that nobody can read another. */
function partsOf(lines: RequestLines, references: FormReferences) {
  const seen = new Set<string>();
  let files = 0;
  let isFile = false;
  let text = 0;
  return {
    head({ name, isFile: told }: { readonly name: string; readonly isFile: boolean }) {
      if (!name.endsWith('[]') && seen.has(name))
        throw new GatewayError('invalid_value', `The form has "${name.slice(0, 100)}" twice.`, {
          param: name,
        });
      seen.add(name);
      isFile = told || name === 'file';
      if (isFile) files += 1;
      references.begin(name, isFile);
      if (files > 1) throw new GatewayError('invalid_value', 'The form has more than one file.');
      if (seen.size > 100) throw new GatewayError('invalid_value', 'The form has too many parts.');
    },
    data(bytes: Buffer) {
      if (isFile) {
        lines.push(bytes);
        return;
      }
      text += bytes.length;
      if (text > longestText)
        throw new GatewayError(
          'request_too_large',
          `The texts of the form have more than ${longestText} bytes.`,
        );
      references.push(bytes);
    },
    end() {
      if (isFile) lines.flush();
      else references.end();
    },
  };
}

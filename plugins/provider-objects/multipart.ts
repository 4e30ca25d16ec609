import { GatewayError } from 'sluice';

/** A part of a form, as its head tells. */
export interface PartHead {
  readonly name: string;
  readonly isFile: boolean;
}

/** Who hears of the parts. */
export interface PartListener {
  /** A part begins. */
  head(part: PartHead): void;
  /** Some of its bytes. */
  data(bytes: Buffer): void;
  /** It has ended. */
  end(): void;
}

const longestHead = 16 * 1024;
const headEnd = Buffer.from('\r\n\r\n');

/** What separates the parts of a form; throws 415 for a body that is none, and 400 where that is not said. */
export function boundaryOf(contentType: string): string {
  if (!/^\s*multipart\/form-data\s*(;|$)/i.test(contentType))
    throw new GatewayError('unsupported_media_type', 'Content-Type must be multipart/form-data.');
  const [, quoted, plain] = /;\s*boundary=(?:"([^"\\]{1,200})"|([^\s;"]{1,200}))/i.exec(contentType) ?? [];
  const boundary = quoted ?? plain;
  if (boundary === undefined || !/^[\x20-\x7e]+$/.test(boundary))
    throw new GatewayError(
      'invalid_request',
      'Content-Type names no boundary between the parts of the form.',
    );
  return boundary;
}

/**
 * Follows a form while it passes by, as `multipart/form-data` is written by clients (RFC 7578), and no more liberally: what is read here must
 * be what its receiver reads. Throws 400 for anything else. Keeps no more than a head, or the length of a boundary.
 */
export class FormScan {
  readonly #listener: PartListener;
  readonly #delimiter: Buffer;
  #state: 'start' | 'head' | 'data' | 'behind' | 'end' = 'start';
  #rest: Buffer;

  constructor(boundary: string, listener: PartListener) {
    this.#listener = listener;
    this.#delimiter = Buffer.from(`\r\n--${boundary}`);
    // As if a line had ended before the form: its first boundary is one like the others.
    this.#rest = Buffer.from('\r\n');
  }

  push(bytes: Buffer): void {
    this.#rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    while (this.#step());
  }

  /** Throws where the form is not complete. */
  finish(): void {
    if (this.#state !== 'end') throw damaged();
  }

  /** True when there may be more to do with what has come. */
  #step(): boolean {
    switch (this.#state) {
      case 'start':
        return this.#start();
      case 'head':
        return this.#head();
      case 'data':
        return this.#data();
      case 'behind':
        return this.#behind();
      case 'end':
        this.#rest = this.#rest.subarray(this.#rest.length);
        return false;
    }
  }

  #start(): boolean {
    // Some clients write an empty line before it.
    if (this.#rest.subarray(0, 4).equals(Buffer.from('\r\n\r\n'))) this.#rest = this.#rest.subarray(2);
    if (this.#rest.length < this.#delimiter.length + 2) return false;
    if (!this.#rest.subarray(0, this.#delimiter.length).equals(this.#delimiter)) throw damaged();
    this.#rest = this.#rest.subarray(this.#delimiter.length);
    this.#state = 'behind';
    return true;
  }

  #behind(): boolean {
    if (this.#rest.length < 2) return false;
    const two = this.#rest.subarray(0, 2).toString('latin1');
    if (two !== '\r\n' && two !== '--') throw damaged();
    this.#rest = this.#rest.subarray(2);
    this.#state = two === '--' ? 'end' : 'head';
    return true;
  }

  #head(): boolean {
    const end = this.#rest.indexOf(headEnd);
    if (end < 0 || end > longestHead) {
      if (this.#rest.length > longestHead) throw damaged();
      return false;
    }
    this.#listener.head(headOf(this.#rest.subarray(0, end).toString()));
    // The line that ends the head may be the one before the next boundary, where the part is empty.
    this.#rest = this.#rest.subarray(end + 2);
    this.#state = 'data';
    this.#isFirst = true;
    return true;
  }

  #isFirst = false;

  #data(): boolean {
    const end = this.#rest.indexOf(this.#delimiter);
    const from = this.#isFirst ? 2 : 0;
    if (end < 0) {
      const sure = this.#rest.length - this.#delimiter.length + 1;
      if (sure > from) {
        this.#listener.data(this.#rest.subarray(from, sure));
        this.#rest = this.#rest.subarray(sure);
        this.#isFirst = false;
      }
      return false;
    }
    if (end > from) this.#listener.data(this.#rest.subarray(from, end));
    this.#listener.end();
    this.#rest = this.#rest.subarray(end + this.#delimiter.length);
    this.#state = 'behind';
    return true;
  }
}

function headOf(text: string): PartHead {
  const lines = text.split('\r\n');
  const dispositions = lines.filter((line) => /^content-disposition\s*:/i.test(line));
  const [line = '', another] = dispositions;
  const [, name] = /;\s*name="((?:[^"\\\r\n]|\\.)*)"/i.exec(line) ?? [];
  if (another !== undefined || name === undefined) throw damaged();
  return { name, isFile: /;\s*filename\*?=/i.test(line) };
}

function damaged(): GatewayError {
  return new GatewayError('invalid_request', 'The form is damaged: it is no multipart/form-data.');
}

/** Splits what a process writes into lines of bounded length. */

/** Number of bytes that are kept of the beginning and of the end of an overlong line. */
const kept = 512;

/** Receives lines without their line feed. */
export interface LineReceiver {
  line(bytes: Buffer): void;
  /** A line was longer than allowed; only its beginning and its end were kept. */
  longLine(beginning: string, end: string): void;
}

/** Collects chunks until a line is complete. Each byte is looked at once. */
export class LineSplitter {
  readonly #limit: number;
  readonly #receiver: LineReceiver;
  #chunks: Buffer[] = [];
  #length = 0;
  /** Set while the rest of a line that is too long passes. */
  #beginning: string | undefined;
  #end: Buffer = Buffer.alloc(0);

  constructor(limit: number, receiver: LineReceiver) {
    this.#limit = limit;
    this.#receiver = receiver;
  }

  push(chunk: Buffer): void {
    let start = 0;
    for (let feed = chunk.indexOf(10); feed !== -1; feed = chunk.indexOf(10, start)) {
      this.#add(chunk.subarray(start, feed));
      this.#finish();
      start = feed + 1;
    }
    if (start < chunk.length) this.#add(chunk.subarray(start));
  }

  #add(part: Buffer): void {
    if (this.#beginning !== undefined) {
      this.#end = Buffer.concat([this.#end, part.subarray(-kept)]).subarray(-kept);
      return;
    }
    this.#chunks.push(part);
    this.#length += part.length;
    if (this.#length <= this.#limit) return;
    const whole = Buffer.concat(this.#chunks);
    this.#beginning = whole.toString('latin1', 0, kept);
    this.#end = Buffer.from(whole.subarray(-kept));
    this.#chunks = [];
  }

  #finish(): void {
    const beginning = this.#beginning;
    if (beginning !== undefined) this.#receiver.longLine(beginning, this.#end.toString('latin1'));
    else if (this.#length > 0) this.#receiver.line(Buffer.concat(this.#chunks));
    this.#beginning = undefined;
    this.#end = Buffer.alloc(0);
    this.#chunks = [];
    this.#length = 0;
  }
}

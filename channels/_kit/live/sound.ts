/** Samples of one channel, of 16 bits. */
export type Samples = Int16Array;

/** The two laws of G.711. */
export type Law = 'mu' | 'alpha';

/** Returns 16-bit samples of little-endian bytes. An odd last byte is left out. */
export function samplesOf(bytes: Buffer): Samples {
  const samples = new Int16Array(bytes.length >> 1);
  for (let at = 0; at < samples.length; at += 1) samples[at] = bytes.readInt16LE(2 * at);
  return samples;
}

/** Returns samples as little-endian bytes. */
export function bytesOf(samples: Samples): Buffer {
  const bytes = Buffer.allocUnsafe(2 * samples.length);
  for (const [at, sample] of samples.entries()) bytes.writeInt16LE(sample, 2 * at);
  return bytes;
}

/** Decodes G.711: ITU-T G.711, tables 1a to 2b. */
export function decodeG711(bytes: Buffer, law: Law): Samples {
  const table = law === 'mu' ? muTable : alphaTable;
  return Int16Array.from(bytes, (byte) => table[byte] ?? 0);
}

/** Encodes samples by G.711: each becomes the byte whose value is the nearest. */
export function encodeG711(samples: Samples, law: Law): Buffer {
  const table = law === 'mu' ? muBytes() : alphaBytes();
  const bytes = Buffer.allocUnsafe(samples.length);
  for (const [at, sample] of samples.entries()) bytes[at] = table[sample + 32_768] ?? 0;
  return bytes;
}

const muTable = Int16Array.from({ length: 256 }, (_, byte) => {
  const code = ~byte & 0xff;
  const size = ((((code & 0x0f) << 3) + 132) << ((code >> 4) & 7)) - 132;
  return (code & 0x80) === 0 ? size : -size;
});

const alphaTable = Int16Array.from({ length: 256 }, (_, byte) => {
  const code = byte ^ 0x55;
  const exponent = (code >> 4) & 7;
  const mantissa = (code & 0x0f) << 4;
  const size = exponent === 0 ? mantissa + 8 : (mantissa + 264) << (exponent - 1);
  return (code & 0x80) === 0 ? -size : size;
});

const muBytes = onceMade(() => nearest(muTable));
const alphaBytes = onceMade(() => nearest(alphaTable));

/** Returns the byte of the nearest value for each of the 65,536 samples. */
function nearest(table: Int16Array): Uint8Array {
  const order = Array.from(table, (value, byte) => ({ value, byte })).toSorted(
    (one, other) => one.value - other.value,
  );
  const bytes = new Uint8Array(65_536);
  let index = 0;
  for (let sample = -32_768; sample < 32_768; sample += 1) {
    for (;;) {
      const [here, next] = [order[index], order[index + 1]];
      if (here === undefined || next === undefined || next.value - sample >= sample - here.value) break;
      index += 1;
    }
    bytes[sample + 32_768] = order[index]?.byte ?? 0;
  }
  return bytes;
}

function onceMade<Value>(make: () => Value): () => Value {
  let made: Value | undefined;
  return () => (made ??= make());
}

/** Samples of the input that one sample of the output is made of. */
const taps = 48;

/** Converts the rate of a stream of sound by a low-pass filter (a windowed sinc). It holds the last 48 samples, so that pieces join without a click. */
export class Resampler {
  /** The rates without their common factor. */
  readonly #up: number;
  readonly #down: number;
  readonly #filter: Float64Array;
  #held: Int16Array = new Int16Array(taps);
  /** Place of the next output sample behind the held input, in steps of the rate that both have in common. */
  #next = 0;

  constructor(from: number, to: number) {
    const common = commonFactor(from, to);
    this.#up = to / common;
    this.#down = from / common;
    this.#filter = lowPass(this.#up, this.#down);
  }

  push(samples: Samples): Samples {
    const [up, down] = [this.#up, this.#down];
    if (up === down) return samples;
    const all = new Int16Array(taps + samples.length);
    all.set(this.#held);
    all.set(samples, taps);
    const end = samples.length * up;
    const output = new Int16Array(Math.max(0, Math.ceil((end - this.#next) / down)));
    for (let at = 0; at < output.length; at += 1) {
      const position = this.#next + at * down;
      const newest = taps + Math.floor(position / up);
      let sum = 0;
      for (let tap = 0, weight = position % up; tap < taps; tap += 1, weight += up)
        sum += (all[newest - tap] ?? 0) * (this.#filter[weight] ?? 0);
      output[at] = Math.max(-32_768, Math.min(32_767, Math.round(sum)));
    }
    this.#next += output.length * down - end;
    this.#held = all.slice(all.length - taps);
    return output;
  }
}

function commonFactor(one: number, other: number): number {
  return other === 0 ? one : commonFactor(other, one % other);
}

/** Returns a filter at `up` times the input rate that passes what both rates can carry. Each of its `up` phases keeps the loudness. */
function lowPass(up: number, down: number): Float64Array {
  const length = taps * up;
  const edge = 0.45 / Math.max(up, down);
  const filter = Float64Array.from({ length }, (_, at) => {
    const x = at - (length - 1) / 2;
    const sinc = x === 0 ? 2 * edge : Math.sin(2 * Math.PI * edge * x) / (Math.PI * x);
    return sinc * (0.5 - 0.5 * Math.cos((2 * Math.PI * (at + 0.5)) / length));
  });
  for (let phase = 0; phase < up; phase += 1) {
    let sum = 0;
    for (let at = phase; at < length; at += up) sum += filter[at] ?? 0;
    for (let at = phase; at < length; at += up) filter[at] = (filter[at] ?? 0) / sum;
  }
  return filter;
}

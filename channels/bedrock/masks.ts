/** Turns masks with transparency into masks in black and white. */
import { crc32, deflateSync, inflateSync } from 'node:zlib';

/*
 * No library for PNG is used because Node has what is hard about the format (zlib and its checksums), one conversion of two types of colour is
 * needed, and a picture with too many pixels is found by its head, before anything is unpacked.
 */

/** Converts a mask of public image APIs, in which transparent areas are to be changed. */
export interface Mask {
  readonly mimeType: string;
  /** Image in base64. */
  readonly data: string;
}

const signature = Buffer.from('89504e470d0a1a0a', 'hex');
/** Bytes of a pixel, of the colour types that have transparency in every pixel: grey, and red, green and blue. */
const widths: Readonly<Record<number, number>> = { 4: 2, 6: 4 };
/** The most pixels that are looked at: more than any model takes. */
const mostPixels = 2048 * 2048;

/**
 * Returns a mask in black and white, for models without transparency: transparent areas in the colour `change`, all others in the other colour.
 * A mask without transparency stays as it is, because it already has this form. So does a mask that cannot be decoded.
 */
export function blackAndWhite({ mimeType, data }: Mask, change: 'black' | 'white'): string {
  if (mimeType !== 'image/png') return data;
  const png = Buffer.from(data, 'base64');
  const head = headOf(png);
  if (head === undefined) return data;
  const { width, height, bytes } = head;
  const lines = linesOf(png, height * (1 + width * bytes));
  if (lines === undefined) return data;
  const colour = change === 'black' ? [0xff, 0] : [0, 0xff];
  const grey = Buffer.alloc(height * (1 + width));
  let before: Buffer = Buffer.alloc(width * bytes);
  let some = false;
  for (let y = 0; y < height; y += 1) {
    const start = y * (1 + width * bytes);
    const line = lines.subarray(start + 1, start + 1 + width * bytes);
    if (!unfilter(lines[start], line, before, bytes)) return data;
    for (let x = 0; x < width; x += 1) {
      const transparent = (line[x * bytes + bytes - 1] ?? 0xff) < 0x80;
      some ||= transparent;
      grey[y * (1 + width) + 1 + x] = colour[transparent ? 1 : 0] ?? 0;
    }
    before = line;
  }
  return some ? greyPng(width, height, grey).toString('base64') : data;
}

function headOf(
  png: Buffer,
): { readonly width: number; readonly height: number; readonly bytes: number } | undefined {
  if (png.length < 33 || !png.subarray(0, 8).equals(signature)) return undefined;
  const [width, height] = [png.readUInt32BE(16), png.readUInt32BE(20)];
  const [depth = 0, type = 0, , , interlaced = 1] = png.subarray(24, 29);
  const bytes = widths[type];
  const isPlain = depth === 8 && interlaced === 0 && width > 0 && height > 0;
  return bytes === undefined || !isPlain || width * height > mostPixels
    ? undefined
    : { width, height, bytes };
}

/** Returns the filtered lines; undefined where there are not as many bytes as there must be. */
function linesOf(png: Buffer, size: number): Buffer | undefined {
  const packed: Buffer[] = [];
  for (let at = 8; at + 12 <= png.length;) {
    const length = png.readUInt32BE(at);
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT') packed.push(png.subarray(at + 8, at + 8 + length));
    at += 12 + length;
  }
  try {
    const lines = inflateSync(Buffer.concat(packed), { maxOutputLength: size });
    return lines.length === size ? lines : undefined;
  } catch {
    return undefined;
  }
}

/** Undoes the filter of a line, in place: https://www.w3.org/TR/png-3/#9Filters. Returns false for an unknown filter. */
function unfilter(filter: number | undefined, line: Buffer, above: Buffer, bytes: number): boolean {
  if (filter === undefined || filter > 4) return false;
  if (filter === 0) return true;
  for (let at = 0; at < line.length; at += 1) {
    const left = at < bytes ? 0 : (line[at - bytes] ?? 0);
    const up = above[at] ?? 0;
    const corner = at < bytes ? 0 : (above[at - bytes] ?? 0);
    line[at] = ((line[at] ?? 0) + guess(filter, left, up, corner)) & 0xff;
  }
  return true;
}

function guess(filter: number, left: number, up: number, corner: number): number {
  if (filter === 1) return left;
  if (filter === 2) return up;
  if (filter === 3) return (left + up) >> 1;
  const toLeft = Math.abs(up - corner);
  const toUp = Math.abs(left - corner);
  const toCorner = Math.abs(left + up - 2 * corner);
  if (toLeft <= toUp && toLeft <= toCorner) return left;
  return toUp <= toCorner ? up : corner;
}

function greyPng(width: number, height: number, lines: Buffer): Buffer {
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head[8] = 8;
  return Buffer.concat([signature, chunk('IHDR', head), chunk('IDAT', deflateSync(lines)), chunk('IEND')]);
}

function chunk(type: string, data = Buffer.alloc(0)): Buffer {
  const body = Buffer.concat([Buffer.from(type), data]);
  const frame = Buffer.alloc(8);
  frame.writeUInt32BE(data.length, 0);
  frame.writeUInt32BE(crc32(body), 4);
  return Buffer.concat([frame.subarray(0, 4), body, frame.subarray(4)]);
}

/** Number of bytes at the beginning of a file that {@link mediaKind} reads. */
export const mediaHead = 4096;

type Look = (head: Buffer) => string | undefined;

/** Signatures at the very beginning, as Latin-1 text. */
const beginnings: readonly (readonly [string, string | Look])[] = [
  ['\x89PNG\r\n\x1a\n', 'image/png'],
  ['\xff\xd8\xff', 'image/jpeg'],
  ['GIF87a', 'image/gif'],
  ['GIF89a', 'image/gif'],
  ['II*\0', 'image/tiff'],
  ['MM\0*', 'image/tiff'],
  ['BM', (head) => (head.length >= 14 && head.readUInt32LE(6) === 0 ? 'image/bmp' : undefined)],
  ['RIFF', (head) => riffTypes[ascii(head, 8, 12)]],
  ['FORM', (head) => (/^AIF[FC]$/.test(ascii(head, 8, 12)) ? 'audio/aiff' : undefined)],
  ['%PDF-', 'application/pdf'],
  ['ID3', 'audio/mpeg'],
  ['fLaC', 'audio/flac'],
  ['#!AMR', 'audio/amr'],
  ['OggS', (head) => (ascii(head, 28, 35) === '\x80theora' ? 'video/ogg' : 'audio/ogg')],
  ['\x1aE\xdf\xa3', (head) => (ascii(head, 4, 64).includes('webm') ? 'video/webm' : 'video/x-matroska')],
  ['FLV\x01', 'video/x-flv'],
  ['\0\0\x01\xba', 'video/mpeg'],
  ['\0\0\x01\xb3', 'video/mpeg'],
  ['PK\x03\x04', 'application/zip'],
  ['\xff', mpegAudio],
];

const riffTypes: Readonly<Record<string, string>> = {
  WEBP: 'image/webp',
  WAVE: 'audio/wav',
  'AVI ': 'video/x-msvideo',
};

/** Major brands of ISO base media files; every other one is a video. */
const brands: readonly (readonly [RegExp, string])[] = [
  [/^avi[fs]$/, 'image/avif'],
  [/^(hei[cxms]|hev[cxms]|mif1|msf1)$/, 'image/heic'],
  [/^(M4A|M4B|M4P|F4A|F4B) $/, 'audio/mp4'],
  [/^qt {2}$/, 'video/quicktime'],
  [/^3g/, 'video/3gpp'],
];

/**
 * Returns the MIME type of a file from its first bytes, such as `image/png` or `audio/mpeg`; undefined without a known signature, for
 * example for text. A container of audio or images counts as video (`video/mp4`, `video/webm`), its most common content.
 *
 * @example
 * const mimeType = mediaKind(bytes.subarray(0, 64)) ?? 'application/octet-stream';
 */
export function mediaKind(head: Buffer): string | undefined {
  const start = ascii(head, 0, 8);
  for (const [signature, type] of beginnings) {
    if (!start.startsWith(signature)) continue;
    return typeof type === 'string' ? type : type(head);
  }
  return start.slice(4) === 'ftyp' ? isoMedia(head) : undefined;
}

function ascii(head: Buffer, from: number, to: number): string {
  return head.toString('latin1', from, to);
}

/** Still images name a general brand first where the special one stands among the compatible ones. */
function isoMedia(head: Buffer): string {
  const major = ascii(head, 8, 12);
  const compatible = ascii(head, 16, Math.min(head.readUInt32BE(0), 128));
  if (/^(mif1|msf1)$/.test(major) && /avi[fs]/.test(compatible)) return 'image/avif';
  return brands.find(([brand]) => brand.test(major))?.[1] ?? 'video/mp4';
}

/** A frame of MPEG audio begins with eleven 1 bits. The layer distinguishes AAC from MP3. */
function mpegAudio(head: Buffer): string | undefined {
  const [, second = 0, third = 0xff] = head;
  if ((second & 0xf6) === 0xf0) return 'audio/aac';
  const isMp3 = (second & 0xe6) === 0xe2 && third >> 4 !== 0xf && ((third >> 2) & 3) !== 3;
  return isMp3 ? 'audio/mpeg' : undefined;
}

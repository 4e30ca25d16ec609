/** Checks that an uploaded file is a recording, and estimates its duration in seconds from its header and size. */
import { GatewayError, missingValue } from '../../../sdk/errors.ts';
import { filesOf, type Upload } from '../../../model/form.ts';
import { mediaKind } from '../../../model/media-kind.ts';
import type { RouteParams } from '../../../sdk/format.ts';

/** File name extensions that are accepted where the type cannot be detected from the bytes: some encoders begin with silence or padding. */
const endings = /\.(mp3|mp4|mpeg|mpga|m4a|ogg|oga|opus|wav|webm|flac)$/i;

/** Returns the recording of a form. Throws 400 if there is none, or if its bytes are not audio or video, whatever its file name is. */
export function recordingOf({ form }: RouteParams): Upload {
  const [file, another] = filesOf(form, 'file');
  if (file === undefined) throw missingValue('file');
  if (another !== undefined) throw refused('file must be given once.');
  if (file.size === 0) throw refused('file is empty.');
  const kind = mediaKind(file.head);
  const isSound =
    kind === undefined ? endings.test(file.filename) && !isText(file.head) : /^(audio|video)\//.test(kind);
  if (!isSound) {
    const found = kind ?? (isText(file.head) ? 'text' : 'of a kind that is not known');
    throw refused(
      `file must be a recording: mp3, mp4, mpeg, mpga, m4a, ogg, wav, webm or flac. Its content is ${found}.`,
    );
  }
  return file;
}

function refused(sentence: string): GatewayError {
  return new GatewayError('invalid_value', sentence, { param: 'file' });
}

/** Returns true when nothing but printable characters stands at the beginning. */
function isText(head: Buffer): boolean {
  return head.every((byte) => byte === 9 || byte === 10 || byte === 13 || (byte >= 32 && byte < 127));
}

/** Assumed bytes per second of a recording without a usable header. */
const usualRate = 8_000;

/** Bytes per second of the most compressed encoding that is usual for speech, for the upper bound of the duration. */
const leastRate = 500;

/** Returns the duration of a recording in seconds, and its upper bound: exact for uncompressed WAV, else estimated from the size. */
export function secondsOf({ head, size }: Upload): { readonly about: number; readonly most: number } {
  const isWave = head.toString('latin1', 0, 4) === 'RIFF' && head.toString('latin1', 8, 16) === 'WAVEfmt ';
  const byteRate = isWave && head.length >= 36 ? head.readUInt32LE(28) : 0;
  // Players use these two fields; the byte rate in the header may differ from them.
  const isPlain = byteRate > 0 && [1, 3].includes(head.readUInt16LE(20));
  const played = isPlain ? head.readUInt32LE(24) * head.readUInt16LE(32) : 0;
  const last = (rate: number): number => Math.max(1, Math.ceil(size / rate));
  return {
    about: last(played || byteRate || usualRate),
    most: last(played || Math.min(byteRate || leastRate, leastRate)),
  };
}

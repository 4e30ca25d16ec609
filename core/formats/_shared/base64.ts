/** Joins pieces of base64 as streams carry them. */

/**
 * Joins pieces of one medium. Providers either cut one base64 text anywhere, or encode each piece by itself: base64 cannot be continued behind its padding, so that what ends with
 * padding is decoded first.
 */
export function joinBase64(pieces: readonly string[]): string {
  const last = pieces.length - 1;
  if (!pieces.some((piece, index) => index < last && piece.endsWith('='))) return pieces.join('');
  const runs: Buffer[] = [];
  let run: string[] = [];
  pieces.forEach((piece, index) => {
    run.push(piece);
    if (index < last && !piece.endsWith('=')) return;
    runs.push(Buffer.from(run.join(''), 'base64'));
    run = [];
  });
  return Buffer.concat(runs).toString('base64');
}

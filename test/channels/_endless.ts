import type { ServerResponse } from 'node:http';

/** Bytes of one write. */
const pieceLength = 64 * 1024;

/**
 * Writes a JSON object of so many bytes in pieces, no faster than they are read. Stops when nobody reads any more. Resolves with the number
 * of bytes that were taken.
 */
export async function writeLong(response: ServerResponse, length: number, member: string): Promise<number> {
  const head = `{"${member}":"`;
  const piece = Buffer.alloc(pieceLength, 'x');
  let written = 0;
  const write = async (bytes: string | Buffer): Promise<void> => {
    written += bytes.length;
    if (response.write(bytes) || response.destroyed) return;
    await new Promise<void>((resolve) => {
      const done = (): void => {
        response.off('drain', done).off('close', done);
        resolve();
      };
      response.on('drain', done).on('close', done);
    });
  };
  await write(head);
  for (let sent = 0; sent < length && !response.destroyed; sent += pieceLength) {
    // oxlint-disable-next-line no-await-in-loop -- each piece waits for the one before
    await write(piece);
  }
  response.end('"}');
  return written;
}

import type { ServerResponse } from 'node:http';
import type { Writable } from 'node:stream';

/** The longest piece that is framed here, in bytes: longer ones cost more to copy than is gained. */
const longest = 8 * 1024;

/**
 * Writes the body of one response, piece by piece. Of each piece of a chunked body Node makes four (its length, a line end, the piece, a
 * line end), which it gathers until the end of the turn and hands to the system as a list. The pieces of a stream are short and come one
 * at a time: framed here, each is a single write at once. A stream of 200 deltas as fast as it goes costs 1.39 times a raw proxy with it
 * and 2.04 times without.
 */
export class BodyWriter {
  readonly #response: ServerResponse;
  #begun = false;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  /** Writes a piece. Returns undefined while the buffer has room, else the stream whose `drain` event to await. Write the head first. */
  write(piece: string | Buffer): Writable | undefined {
    const response = this.#response;
    const { socket } = response;
    // Node sends the first piece together with the head. While another response on the same connection runs there is no socket yet.
    // For a client that has closed its side Node itself drops the bytes.
    if (
      !this.#begun ||
      socket?.writable !== true ||
      typeof piece === 'string' ||
      piece.length === 0 ||
      piece.length > longest ||
      !response.chunkedEncoding ||
      response.req.method === 'HEAD'
    ) {
      this.#begun = true;
      return response.write(piece) ? undefined : response;
    }
    return socket.write(framed(piece)) ? undefined : socket;
  }
}

/** Returns a piece as a chunk of chunked transfer coding (RFC 9112, section 7.1). */
function framed(piece: Buffer): Buffer {
  const head = `${piece.length.toString(16)}\r\n`;
  const chunk = Buffer.allocUnsafe(head.length + piece.length + 2);
  chunk.write(head, 'latin1');
  piece.copy(chunk, head.length);
  chunk[chunk.length - 2] = 0x0d;
  chunk[chunk.length - 1] = 0x0a;
  return chunk;
}

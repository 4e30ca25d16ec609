/** A session over a WebSocket whose messages pass through unchanged. Its content is in its messages. */
export interface RealtimeRequest {
  readonly operation: 'realtime';
  /** The format that the client wrote. */
  readonly format: string;
  readonly model: string;
}

/**
 * One message of a WebSocket.
 *
 * @example
 * const message: SocketMessage = { data: Buffer.from(JSON.stringify({ type: 'response.create' })), binary: false };
 */
export interface SocketMessage {
  readonly data: Buffer;
  readonly binary: boolean;
  /** On the last one alone: the socket was closed with this code, and `data` is the reason. */
  readonly close?: number;
}

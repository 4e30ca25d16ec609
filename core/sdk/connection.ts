/** Call key and type of the client's WebSocket over which several calls come. */
import { callKey, type CallKey } from './call-key.ts';

/** A WebSocket of a client. Values that are set here live as long as the connection, and no other connection sees them. */
export interface Connection {
  get<T>(key: CallKey<T>): T | undefined;
  set<T>(key: CallKey<T>, value: T): void;
}

/** The WebSocket of a call: set by the front end, absent for plain HTTP requests. */
export const connection = callKey<Connection>('connection');

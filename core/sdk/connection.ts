import { callKey, type CallKey } from './call-key.ts';

/** A socket over which several calls come. What is kept here lives as long as it does, and no other connection sees it. */
export interface Connection {
  get<T>(key: CallKey<T>): T | undefined;
  set<T>(key: CallKey<T>, value: T): void;
}

/** The socket that a call came over: set by the front end, absent for plain HTTP requests. */
export const connection = callKey<Connection>('connection');

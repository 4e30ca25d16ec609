import { callKey, type JsonObject, type Call } from 'sluice';
import { connection } from 'sluice/internal';

/** The most turns that one connection remembers: as many as it may have lanes, each with its latest. */
const mostTurns = 16;

/** All items up to a response, by the response's id. */
type Turns = Map<string, readonly JsonObject[]>;

const turnsKey = callKey<Turns>('turns kept on the connection');

/** All items up to and including a response that only this call's connection remembers; undefined when it remembers none of that id. */
export function turnOnConnection(call: Call, id: string): readonly JsonObject[] | undefined {
  return call.get(connection)?.get(turnsKey)?.get(id);
}

/**
 * Forgets the response that a failed call on this connection followed. The official service does so, so that clients do not retry on top
 * of a turn whose outcome is unclear: the next call that names it is told that it is unknown, and the client sends everything.
 */
export function forgetOnConnection(call: Call): void {
  const { previous_response_id: id } = call.body;
  if (typeof id === 'string') call.get(connection)?.get(turnsKey)?.delete(id);
}

/** Remembers a response that is not stored for the calls that follow on the same connection; the oldest is forgotten when there are many. */
export function keepOnConnection(call: Call, id: string, items: readonly JsonObject[]): void {
  const socket = call.get(connection);
  if (socket === undefined) return;
  let turns = socket.get(turnsKey);
  if (turns === undefined) socket.set(turnsKey, (turns = new Map()));
  turns.delete(id);
  turns.set(id, items);
  for (const oldest of turns.keys()) {
    if (turns.size <= mostTurns) break;
    turns.delete(oldest);
  }
}

/** Remembers responses that are not stored for later calls on the same WebSocket connection. */
import { callKey, type JsonObject, type Call } from 'sluice';
import { connection } from 'sluice/internal';

/** Maximum number of turns that a connection remembers: the latest of each lane that it may have. */
const mostTurns = 16;

/** Items up to and including a response, by the id of the response. */
type Turns = Map<string, readonly JsonObject[]>;

const turnsKey = callKey<Turns>('turns kept on the connection');

/** Returns all items up to and including a response that only this call's connection remembers; undefined for an unknown id. */
export function itemsOnConnection(call: Call, id: string): readonly JsonObject[] | undefined {
  return call.get(connection)?.get(turnsKey)?.get(id);
}

/**
 * Removes the response that a failed call on this connection continued. OpenAI does the same, so that clients do not retry on top of a turn whose
 * outcome is unclear: the next call that names the response gets an error, and the client sends everything.
 */
export function forgetOnConnection(call: Call): void {
  const { previous_response_id: id } = call.body;
  if (typeof id === 'string') call.get(connection)?.get(turnsKey)?.delete(id);
}

/** Remembers a response that is not stored, for later calls on the same connection. The oldest one is removed beyond the maximum. */
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

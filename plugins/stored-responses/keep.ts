/** Stores the turn of a call: its input and its response, in the database or for the connection, and in its conversation. */
import type { GatewayEvent, JsonObject, Keeper, KeepVerdict, Log } from 'sluice';
import { connection, type Call } from 'sluice/internal';
import type { ResponseStore, StoredResponse } from './core-types.ts';
import { forgetOnConnection, keepOnConnection } from './connection-turns.ts';
import { withIds } from './items.ts';
import { Recorder } from './record.ts';
import { outputItems, ownerOf, type Resolved } from './resolve.ts';

/** Services and options for storing turns. */
export interface Keeping {
  readonly store: ResponseStore;
  /** Seconds. */
  readonly retention: number;
  readonly log: Log;
}

/** Storage of a turn: `stored` for all later calls of its owner, `connection` for those on the same WebSocket, or none. */
export type Retention = 'stored' | 'connection' | 'nowhere';

/** Returns the storage that a call requests. */
export function retentionOf(call: Call): Retention {
  if (call.body.store !== false) return 'stored';
  return call.get(connection) === undefined ? 'nowhere' : 'connection';
}

/** Returns the stored form of a turn. `response` may still run. */
export function turnOf(
  call: Call,
  resolved: Resolved,
  response: JsonObject,
  retention: number,
): StoredResponse {
  const { history, input, previous, conversation } = resolved;
  const own = withIds(input());
  // Earlier turns that are only known to the connection are stored with this one.
  const alone = previous === undefined && conversation === undefined;
  return {
    id: String(response.id),
    owner: ownerOf(call),
    createdAt: call.created,
    expiresAt: call.created + retention,
    response: inClientsWords(call, response, conversation),
    input: alone ? [...withIds(history), ...own] : own,
    ...(previous === undefined ? {} : { previous }),
  };
}

/** Returns a response that names the conversation or the earlier response as the client did, because the provider got all items written out. */
function inClientsWords(call: Call, response: JsonObject, conversation: string | undefined): JsonObject {
  if (conversation !== undefined) return { ...response, conversation: { id: conversation } };
  const { previous_response_id: previous } = call.body;
  return typeof previous === 'string' ? { ...response, previous_response_id: previous } : response;
}

/** Adds a turn to its conversation, as a whole, where its response is completed or incomplete. */
export async function growConversation(
  store: ResponseStore,
  { owner, input, response }: StoredResponse,
  { conversation }: Resolved,
): Promise<void> {
  if (conversation === undefined || !isAnswer(response)) return;
  await store.appendItems(owner, conversation, [...input, ...outputItems(response)]);
}

function isAnswer({ status }: JsonObject): boolean {
  return status === 'completed' || status === 'incomplete';
}

/**
 * Stores one turn. A failure is logged, and the client gets its response all the same. A later request that refers to the turn gets an error, after
 * which clients send everything.
 */
export class TurnKeeper implements Keeper {
  readonly #call: Call;
  readonly #resolved: Resolved;
  readonly #keeping: Keeping;
  readonly #recorder: Recorder;
  /** True when the turn was stored, or cannot be. */
  #over = false;

  constructor(call: Call, resolved: Resolved, keeping: Keeping) {
    this.#call = call;
    this.#resolved = resolved;
    this.#keeping = keeping;
    this.#recorder = new Recorder(call);
  }

  see(event: GatewayEvent): KeepVerdict {
    if (this.#over) return 'pass';
    try {
      return this.#recorder.see(event);
    } catch (error) {
      this.#over = true;
      this.#report(error);
      return 'pass';
    }
  }

  keep(failure?: { readonly error: unknown }): Promise<void> | undefined {
    if (this.#over) return undefined;
    this.#over = true;
    if (failure !== undefined) forgetOnConnection(this.#call);
    return this.#keep(failure);
  }

  async #keep(failure: { readonly error: unknown } | undefined): Promise<void> {
    try {
      const response =
        failure === undefined ? this.#recorder.response() : this.#recorder.failed(failure.error);
      if (response !== undefined) await this.#save(response);
    } catch (error) {
      this.#report(error);
    }
  }

  async #save(response: JsonObject): Promise<void> {
    const { store, retention } = this.#keeping;
    if (typeof response.id !== 'string') throw new Error('The response has no id.');
    const channel = this.#recorder.channelOf(response);
    const turn = {
      ...turnOf(this.#call, this.#resolved, response, retention),
      ...(channel === undefined ? {} : { channel }),
    };
    const retained = retentionOf(this.#call);
    if (!isAnswer(response)) forgetOnConnection(this.#call);
    if (retained === 'stored') await store.save(turn);
    else if (retained === 'connection' && isAnswer(response)) {
      const { history, input } = this.#resolved;
      keepOnConnection(this.#call, turn.id, [...history, ...input(), ...outputItems(response)]);
    }
    await growConversation(store, turn, this.#resolved);
  }

  #report(error: unknown): void {
    this.#keeping.log.error({ id: this.#call.id, error }, 'a response could not be stored');
  }
}

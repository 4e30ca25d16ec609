/** Converts a provider's description of an object into what the client may see: URLs of the gateway, and no results before they are charged. */
import { isObject, type JsonObject, type Call } from 'sluice';
import type { ObjectServices } from './services.ts';
import { idIn, kindOf, type Collection } from './collections.ts';

/** Returns a provider's description of an object as its owner may see it. `isWaiting`: without results, because they are not charged yet. */
export function asShown(
  call: Call,
  collection: Collection,
  seen: JsonObject,
  { publicUrl }: Pick<ObjectServices, 'publicUrl'>,
  isWaiting = false,
): JsonObject {
  const now = isWaiting ? withoutResults(collection, seen) : seen;
  if (kindOf(collection) !== 'messages/messages/batches' || typeof now['results_url'] !== 'string')
    return now;
  const id = idIn(collection, now) ?? '';
  return { ...now, results_url: `${publicUrl ?? originOf(call)}/v1/messages/batches/${id}/results` };
}

/** Returns the description of a batch without its results. An ended batch looks as if it were about to end. */
function withoutResults(collection: Collection, seen: JsonObject): JsonObject {
  switch (kindOf(collection)) {
    case 'chat-completions/batches':
      if ((seen['output_file_id'] ?? seen['error_file_id'] ?? null) === null) return seen;
      return { ...seen, status: 'finalizing', output_file_id: null, error_file_id: null, completed_at: null };
    case 'messages/messages/batches':
      if (seen['processing_status'] !== 'ended') return seen;
      return { ...seen, processing_status: 'in_progress', ended_at: null, results_url: null };
    case 'generate-content/batches': {
      const { response: _response, metadata, ...rest } = seen;
      if (seen['done'] !== true && !isObject(metadata)) return seen;
      const { output: _output, endTime: _end, ...visible } = isObject(metadata) ? metadata : {};
      const isOver = seen['done'] === true;
      return {
        ...rest,
        done: false,
        metadata: isOver ? { ...visible, state: 'BATCH_STATE_RUNNING' } : visible,
      };
    }
    default:
      return seen;
  }
}

/** Returns the origin of the gateway by the request's headers; empty for an invalid `host`. */
export function originOf({ wire: { headers } }: Call): string {
  const scheme = headers['x-forwarded-proto'] === 'https' ? 'https' : 'http';
  const host = headers.host ?? '';
  return /^[\w.:[\]-]{1,255}$/.test(host) ? `${scheme}://${host}` : '';
}

/** The admin endpoint that changes several API keys in one request. */
import { toGatewayError, type Log } from 'sluice';
import { internalFailure } from './http.ts';
import type { Handlers } from './serve.ts';

type KeyHandlers = Handlers<'enableKey' | 'disableKey' | 'deleteKey' | 'updateKey'>;

/** Returns the route. Each key is changed as by a request of its own: what fails for one leaves the others changed. */
export function keysBulkHandler(keys: KeyHandlers, log: Log): Handlers<'changeKeys'> {
  return {
    async changeKeys(request) {
      const { action, ids, team = null } = request.body;
      const change = (id: string): unknown => {
        const one = { ...request, id };
        if (action === 'move') return keys.updateKey({ ...one, body: { team } });
        if (action === 'delete') return keys.deleteKey({ ...one, body: undefined });
        return keys[action === 'enable' ? 'enableKey' : 'disableKey']({ ...one, body: {} });
      };
      const changed: string[] = [];
      const failed: { id: string; message: string }[] = [];
      for (const id of new Set(ids)) {
        try {
          // oxlint-disable-next-line no-await-in-loop -- one at a time, so that calls get to the database
          await change(id);
          changed.push(id);
        } catch (thrown) {
          const error = toGatewayError(thrown);
          const isInternal = error.code === 'internal_error';
          if (isInternal)
            log.error({ error: error.cause ?? error }, 'a change of several keys failed for one');
          failed.push({ id, message: isInternal ? internalFailure : error.message });
        }
      }
      return { changed, failed };
    },
  };
}

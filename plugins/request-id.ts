import { callKey, definePlugin } from 'sluice';

/** The id that the client gave its request, for whoever writes about the call. */
export const clientRequestId = callKey<string>('client request id');

/**
 * Callers find their own `x-client-request-id` (or `x-request-id`) in the operator's log, beside the gateway's id that the reply carries.
 */
export default definePlugin({
  name: 'request-id',
  stage: 'observe',
  setup() {
    return function requestId(call, next) {
      const { headers } = call.wire;
      const id = usable(headers['x-client-request-id']) ?? usable(headers['x-request-id']);
      if (id !== undefined) call.set(clientRequestId, id);
      return next(call);
    };
  },
});

/** Ids are short and visible; anything else would only let a stranger write into the log. */
function usable(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' && /^[\x21-\x7e]{1,200}$/.test(value) ? value : undefined;
}

/** Attaches the request id that the client sent to the call, for the log. */
import { callKey, definePlugin } from 'sluice';

/** Request id that the client sent, for log lines about the call. */
export const clientRequestId = callKey<string>('client request id');

/** Logs the client's `x-client-request-id` (or `x-request-id`) beside the gateway's id, which the response has in its headers. */
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

/** Returns a header that is a valid id: 1 to 200 visible ASCII characters, so that clients cannot write other text into the log. */
function usable(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' && /^[\x21-\x7e]{1,200}$/.test(value) ? value : undefined;
}

/** Errors for files that cannot be used as the input of a batch. */
import { GatewayError, type JsonObject, type JsonValue } from 'sluice';
import { endpointOf } from './batch-sorts.ts';

/** Returns the 400 error for a file that cannot be used as the input of a batch, with the reason where it is known. */
export function unusableFile(reason: JsonValue | undefined, param: string): GatewayError {
  const rule =
    'A batch needs a file of requests, one per line, that was uploaded completely through this gateway.';
  return new GatewayError('invalid_value', typeof reason === 'string' ? `${rule} ${reason}` : rule, {
    param,
  });
}

/** Throws 400 where lines are for another endpoint than their batch, because they are measured and charged by its requests. */
export function checkEndpoint({ endpoints }: JsonObject, endpoint: JsonValue | undefined): void {
  const list: readonly JsonValue[] = Array.isArray(endpoints) ? endpoints : [];
  const wanted = typeof endpoint === 'string' ? endpointOf(endpoint) : undefined;
  const other = list.find((one) => typeof one !== 'string' || endpointOf(one) !== wanted);
  if (other !== undefined)
    throw new GatewayError(
      'invalid_value',
      `The file has a request for ${String(other).slice(0, 100)}, which is not the endpoint of the batch.`,
      { param: 'endpoint' },
    );
}

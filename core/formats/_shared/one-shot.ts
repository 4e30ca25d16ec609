import type { GatewayRequest } from '../../model/request.ts';
import { requiredModel } from './check.ts';
import type { Codec } from '../../sdk/format.ts';

/** What a codec must say for itself when its operation has one request and one reply, and its requests name their model as `model`. */
export type OneShot<R extends GatewayRequest> = Pick<
  Codec<R>,
  'format' | 'operation' | 'decodeRequest' | 'encodeRequest' | 'decodeWhole' | 'encodeWhole'
> &
  Partial<Codec<R>> & {
    /** Below the provider's base URL: `/embeddings`. */
    readonly path: string;
  };

/** A codec with what such operations have in common; every member that is given wins. */
export function oneShot<R extends GatewayRequest>({ path, ...own }: OneShot<R>): Codec<R> {
  return {
    upstreamFraming: 'none',
    marks: { usage: ['"usage":{', '"usage": {'], terminal: [] },
    toleratesComments: true,
    peek: ({ model }) => ({ model: requiredModel(model), stream: false }),
    validate: (body, params) => own.decodeRequest(body, params),
    clientFraming: () => 'none',
    patch: (body, { model }) => (model === undefined ? body : { ...body, model }),
    passThrough: () => ({ path }),
    usageTap: () => ({ read: () => undefined }),
    settingPath: (name) => name,
    ...own,
  };
}

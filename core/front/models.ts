import type { Context } from 'koa';
import { Exchange } from '../call/exchange.ts';
import { accept } from './accept.ts';
import type { Front } from './front.ts';
import { modelOf, requestId, wireOf } from './wire.ts';
import { of } from 'rxjs';
import type { Next } from '../sdk/define.ts';
import { GatewayError } from '../sdk/errors.ts';
import type { Codec, Format } from '../sdk/format.ts';
import type { ListedModel } from '../model/event.ts';
import type { Catalog } from '../routing/catalog.ts';
import { answerCodec } from './answer-codec.ts';

/** The end of the pipeline for a model list: every model there is. Plugins on the way back leave out what the caller may not use. */
export function listModels(catalog: Catalog): Next {
  return function list() {
    return Promise.resolve(of({ type: 'models', models: catalog.list() }));
  };
}

/** Writes a model list, or one model of it, in a format. It never sees a request body. */
export function listingCodec(format: Format, wanted: string | undefined, query: URLSearchParams): Codec {
  return answerCodec(format, {
    operation: 'list-models',
    toleratesComments: false,
    encodeWhole() {
      let models: readonly ListedModel[] = [];
      return {
        event(event) {
          if (event.type === 'models') models = event.models;
        },
        end() {
          if (format.models === undefined)
            throw new GatewayError('unknown_url', 'This format has no model list.');
          if (wanted === undefined) return format.models.list(models, query);
          const named = format.models.idOf?.(wanted) ?? wanted;
          const one = models.find(({ id }) => id === wanted) ?? models.find(({ id }) => id === named);
          if (one === undefined) {
            throw new GatewayError(
              'model_not_found',
              `The model "${wanted}" does not exist or your key has no access to it.`,
              { param: 'model' },
            );
          }
          return format.models.one(one);
        },
      };
    },
  });
}

/** The handlers of model lists in a format: of all models, and of one. */
export function listRoutes(front: Front): (format: Format, one: boolean) => (ctx: Context) => void {
  const handle = front.gateway.around(listModels(front.gateway.catalog));
  return (format, one) =>
    function routeList(ctx) {
      const wire = wireOf(ctx, front.clientAddress(ctx.req));
      const codec = listingCodec(format, one ? modelOf(ctx) : undefined, wire.query);
      accept(ctx, front, new Exchange(requestId(), 'list-models', format, codec, wire), handle);
    };
}

/** Serves the lists of models in each format, as calls through the pipeline so that plugins can filter them. */
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

/** Returns the last step of the pipeline for a model list: emits all models. Plugins remove those that the caller may not use. */
export function listModels(catalog: Catalog): Next {
  return function list() {
    return Promise.resolve(of({ type: 'models', models: catalog.list() }));
  };
}

/** Returns the codec that encodes a model list, or the model `wanted`, in a format. */
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

/** Returns a function that makes the handlers for a format: for all models, or for one. */
export function listRoutes(front: Front): (format: Format, one: boolean) => (ctx: Context) => void {
  const handle = front.gateway.around(listModels(front.gateway.catalog));
  return (format, one) =>
    function routeList(ctx) {
      const wire = wireOf(ctx, front.clientAddress(ctx.req));
      const codec = listingCodec(format, one ? modelOf(ctx) : undefined, wire.query);
      accept(ctx, front, new Exchange(requestId(), 'list-models', format, codec, wire), handle);
    };
}

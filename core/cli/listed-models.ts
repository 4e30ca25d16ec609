import { lastValueFrom } from 'rxjs';
import { Exchange } from '../call/exchange.ts';
import { compose } from '../call/pipeline.ts';
import { firstView } from '../call/view.ts';
import type { Gateway } from '../front/gateway.ts';
import { listingCodec, listModels } from '../front/models.ts';

/**
 * Returns the names in the model list of a key that may use every model, sorted, with those that plugins add, such as aliases. The call
 * runs through the plugins behind authentication, because there is no key to show.
 */
export async function listedModels(gateway: Gateway): Promise<readonly string[]> {
  const format = gateway.formats.find(({ name }) => name === 'chat-completions');
  if (format === undefined) return [];
  const query = new URLSearchParams();
  const exchange = new Exchange('check', 'list-models', format, listingCodec(format, undefined, query), {
    method: 'GET',
    path: '/v1/models',
    query,
    headers: {},
    params: {},
    ip: '127.0.0.1',
    bytes: Buffer.alloc(0),
    body: undefined,
  });
  const plugins = gateway.plugins.filter(({ stage }) => stage === 'admit' || stage === 'shape');
  try {
    const events = await compose(plugins, listModels(gateway.catalog), true)(firstView(exchange));
    const event = await lastValueFrom(events);
    return event.type === 'models' ? event.models.map(({ id }) => id) : [];
  } finally {
    exchange.end();
  }
}

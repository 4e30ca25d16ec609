import type { Format, Operation, Route } from '../../sdk/format.ts';
import { chat } from './codec.ts';
import { countTokens } from './count-tokens.ts';
import { withoutAddress } from '../_shared/model-address.ts';
import { isSigned } from '../_shared/signed.ts';
import { modelListing } from './models.ts';
import { rerank } from './rerank.ts';
import { errorReply, replyHeaders } from '../_shared/exceptions.ts';
import { formatName } from './wire.ts';

/** Returns a method of a model, whose name may be an address with slashes and colons, written as one part of the path. */
function method(path: string, operation: Operation, stream = false): Route {
  return {
    method: 'POST',
    path: `/model/*model/${path}`,
    operation,
    params: ({ model }) => ({ model: withoutAddress(model ?? ''), stream }),
  };
}

const converse: Format = {
  name: formatName,
  routes: [
    method('converse', 'chat'),
    method('converse-stream', 'chat', true),
    method('count-tokens', 'count-tokens'),
    { method: 'GET', path: '/foundation-models', operation: 'list-models' },
    { method: 'GET', path: '/foundation-models/*model', operation: 'get-model' },
    // The other rerank format has this path, too.
    { method: 'POST', path: '/rerank', operation: 'rerank', isFor: isSigned },
  ],
  codecs: { chat, 'count-tokens': countTokens, rerank },
  models: modelListing,
  errorReply,
  replyHeaders,
};

/** The Converse format: `/model/{modelId}/converse`, its stream and its token counts; model lists and rerank as the same SDKs have them. */
export default converse;

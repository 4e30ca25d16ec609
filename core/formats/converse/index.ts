import type { Format, Operation, Route } from '../../sdk/format.ts';
import { chat } from './codec.ts';
import { countTokens } from './count-tokens.ts';
import { errorReply, replyHeaders } from '../_shared/exceptions.ts';
import { formatName } from './wire.ts';

/** A method of a model, whose name may be an address with slashes and colons, written as one part of the path. */
function method(path: string, operation: Operation, stream = false): Route {
  return {
    method: 'POST',
    path: `/model/*model/${path}`,
    operation,
    params: ({ model }) => ({ model: model ?? '', stream }),
  };
}

const converse: Format = {
  name: formatName,
  routes: [
    method('converse', 'chat'),
    method('converse-stream', 'chat', true),
    method('count-tokens', 'count-tokens'),
  ],
  codecs: { chat, 'count-tokens': countTokens },
  errorReply,
  replyHeaders,
};

/** The Converse format: `/model/{modelId}/converse`, its stream and its token counts. */
export default converse;

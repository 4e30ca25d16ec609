import type { Format, Route } from '../../sdk/format.ts';
import { withoutAddress } from '../_shared/model-address.ts';
import { errorReply, replyHeaders } from '../_shared/exceptions.ts';
import { chat } from './codec.ts';
import { profileListing } from './models.ts';
import { name } from './wire.ts';

/** Returns a route of a model. The name can be an ARN with slashes and colons, as one segment of the path. */
function method(path: string, stream: boolean): Route {
  return {
    method: 'POST',
    path: `/model/*model/${path}`,
    operation: 'chat',
    // The SDKs return bytes without a type.
    untyped: true,
    params: ({ model }) => ({ model: withoutAddress(model ?? ''), stream }),
  };
}

const invoke: Format = {
  name,
  routes: [
    method('invoke', false),
    method('invoke-with-response-stream', true),
    { method: 'GET', path: '/inference-profiles', operation: 'list-models' },
    { method: 'GET', path: '/inference-profiles/*model', operation: 'get-model' },
  ],
  codecs: { chat },
  models: profileListing,
  errorReply,
  replyHeaders,
};

/**
 * The messages format inside InvokeModel: the model in the path, the stream as chunks of binary messages, errors as exceptions. With the lists of
 * inference profiles, for which clients of InvokeModel ask.
 */
export default invoke;

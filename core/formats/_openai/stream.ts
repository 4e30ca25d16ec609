/** Encodes the request for a stream of completions. */
import type { ChatRequest } from '../../model/chat.ts';
import { isObject, type JsonObject, type MutableObject } from '../../model/json.ts';
import type { EncodeTarget } from '../../sdk/format.ts';
import { optionalBoolean, optionalObject } from '../_shared/check.ts';
import type { Leftovers } from '../_shared/extra.ts';
import { setOf } from '../_shared/fields.ts';

const optionFields = setOf('include_usage');

/**
 * Keeps how a request for a completion asks for a stream. `include_usage` is between the gateway and its client; obfuscation is a wish of the
 * client's that only its own format can grant. Throws 400 with the path.
 */
export function keepStream(body: JsonObject, left: Leftovers): void {
  if (body.stream === false) left.put('$stream', false);
  const options = optionalObject(body.stream_options, 'stream_options');
  if (options === undefined) return;
  const usage = optionalBoolean(options.include_usage, 'stream_options.include_usage');
  left.put('$stream_options', usage === undefined ? {} : { include_usage: usage });
  left.take(options, optionFields, 'stream_options.');
}

/**
 * Sets the stream options in `body`, which has the options that only this format has. A stream for a client of another format, or for a
 * client without streaming, always includes usage. `own`: stored members of the request.
 */
export function writeStream(
  request: ChatRequest,
  own: JsonObject,
  body: MutableObject,
  target: EncodeTarget,
  format: string,
): void {
  const streamOptions = isObject(own.$stream_options) ? own.$stream_options : undefined;
  const options = { ...streamOptions, ...(isObject(body.stream_options) ? body.stream_options : {}) };
  const asClient = request.format === format && request.stream === target.stream;
  if (body.stream_options !== undefined) delete body.stream_options;
  if (target.stream) body.stream = true;
  else if (own.$stream === false) body.stream = false;
  if (!asClient && target.stream) body.stream_options = { ...options, include_usage: true };
  else if (asClient && streamOptions !== undefined) body.stream_options = options;
}

/** The operations that a call can have, and the type of the decoded request of each. */
import type { ChatRequest } from '../model/chat.ts';
import type { GatewayRequest } from '../model/request.ts';

/**
 * Operation of a call. Each has its own codecs, except for the last three, which reach no channel: `list-models`; `state`, which reads or
 * changes data that the gateway stores for its callers (stored responses, conversations); and `tool`, the run of a tool by a plugin.
 *
 * @example
 * if (call.operation !== 'chat') return next(call);
 */
export type Operation =
  | 'chat'
  | 'count-tokens'
  | 'compact'
  | 'embed'
  | 'rerank'
  | 'moderate'
  | 'ocr'
  | 'generate-image'
  | 'edit-image'
  | 'vary-image'
  | 'transcribe'
  | 'translate-audio'
  | 'speak'
  | 'create-video'
  | 'get-video'
  | 'delete-video'
  | 'realtime'
  | 'list-models'
  | 'state'
  | 'tool';

/** The decoded request of an operation. */
export type RequestOf<O extends Operation> = O extends 'chat' | 'count-tokens' | 'compact'
  ? ChatRequest
  : O extends 'list-models' | 'state' | 'tool'
    ? GatewayRequest
    : WithOperation<GatewayRequest, O>;

type WithOperation<R, O> = R extends { readonly operation: infer All } ? (O extends All ? R : never) : never;

import * as messagesErrors from '@anthropic-ai/sdk';
import * as chatErrors from 'openai';
import type { Access, FormatName } from './sdks.ts';

/** Request through an SDK. */
export interface Request {
  readonly model: string;
  readonly text?: string;
  readonly stream?: boolean;
  readonly access?: Access;
  readonly headers?: Record<string, string>;
  /** Sent instead of what the SDK would write. */
  readonly wrong?: Record<string, unknown>;
}

/** Error of an SDK: its class and its parsed fields. */
export interface Seen {
  readonly class: unknown;
  readonly type: string;
  /** Only the chat format has one. */
  readonly code?: string | null;
  readonly param?: string | null;
}

/** Every status that a client can see, how to get it, and what each SDK makes of it. */
export interface Case {
  readonly status: number;
  readonly name: string;
  /** `limited` is a key whose limit is used up. */
  readonly request: Request | ((gateway: { readonly url: string; readonly limited: string }) => Request);
  /** Fields that only exist in one format's request. */
  readonly wrong?: Readonly<Record<FormatName, Record<string, unknown>>>;
  readonly chat: Seen;
  readonly messages: Seen;
  /** The word in `error.status`. */
  readonly generateContent: string;
  readonly message: RegExp;
  readonly retryAfter?: string;
  readonly shouldRetry?: 'false';
}

/** Each status in each way that brings it about. */
export const cases: readonly Case[] = [
  {
    status: 400,
    name: 'a field of the wrong type',
    request: { model: 'via-messages' },
    wrong: {
      'chat-completions': { temperature: 'hot' },
      messages: { max_tokens: 'many' },
      'generate-content': { generationConfig: { temperature: 'hot' } },
      responses: { temperature: 'hot' },
    },
    chat: {
      class: chatErrors.BadRequestError,
      type: 'invalid_request_error',
      code: 'invalid_type',
      param: 'temperature',
    },
    messages: { class: messagesErrors.BadRequestError, type: 'invalid_request_error' },
    generateContent: 'INVALID_ARGUMENT',
    message: /(temperature|max_tokens) must be/,
  },
  {
    status: 401,
    name: 'a key that nobody made',
    request: (gateway) => ({
      model: 'via-messages',
      access: { url: gateway.url, key: 'sk-0000000000000000000000000000000000000000000' },
    }),
    chat: {
      class: chatErrors.AuthenticationError,
      type: 'invalid_request_error',
      code: 'invalid_api_key',
      param: null,
    },
    messages: { class: messagesErrors.AuthenticationError, type: 'authentication_error' },
    generateContent: 'UNAUTHENTICATED',
    // By these words client libraries tell it from a request that makes no sense.
    message: /^(?:401 )?Incorrect API key provided: (?!.*sk-)/,
  },
  {
    status: 403,
    name: 'a model that the key may not use',
    request: (gateway) => ({
      model: 'via-chat-completions',
      access: { url: gateway.url, key: gateway.limited },
    }),
    chat: {
      class: chatErrors.PermissionDeniedError,
      type: 'invalid_request_error',
      code: 'model_not_allowed',
      param: 'model',
    },
    messages: { class: messagesErrors.PermissionDeniedError, type: 'permission_error' },
    generateContent: 'PERMISSION_DENIED',
    message: /via-chat-completions/,
  },
  {
    status: 413,
    name: 'a body that is too large',
    request: { model: 'via-messages', text: 'x'.repeat(70_000) },
    chat: { class: chatErrors.APIError, type: 'invalid_request_error', code: 'request_too_large' },
    messages: { class: messagesErrors.ContentTooLargeError, type: 'request_too_large' },
    generateContent: 'INVALID_ARGUMENT',
    message: /larger than 65536 bytes/,
  },
  {
    status: 415,
    name: 'a body that says it is no JSON',
    request: { model: 'via-messages', headers: { 'content-type': 'text/plain' } },
    chat: { class: chatErrors.APIError, type: 'invalid_request_error', code: 'unsupported_media_type' },
    messages: { class: messagesErrors.APIError, type: 'invalid_request_error' },
    generateContent: 'INVALID_ARGUMENT',
    message: /application\/json/,
  },
  {
    status: 429,
    name: 'a provider that limits, and says for how long',
    request: { model: 'via-messages', text: '!status=429 retry-after=7' },
    chat: { class: chatErrors.RateLimitError, type: 'rate_limit_error', code: 'rate_limit_exceeded' },
    messages: { class: messagesErrors.RateLimitError, type: 'rate_limit_error' },
    generateContent: 'RESOURCE_EXHAUSTED',
    message: /answers 429, as you asked/,
    retryAfter: '7',
  },
  {
    status: 429,
    name: 'a provider that limits without a word on how long',
    request: { model: 'via-chat-completions', text: '!status=429' },
    chat: { class: chatErrors.RateLimitError, type: 'rate_limit_error', code: 'rate_limit_exceeded' },
    messages: { class: messagesErrors.RateLimitError, type: 'rate_limit_error' },
    generateContent: 'RESOURCE_EXHAUSTED',
    message: /answers 429, as you asked/,
    retryAfter: '1',
  },
  {
    status: 429,
    name: 'a spent budget, which no retry mends',
    request: { model: 'refused-by-insufficient_quota' },
    chat: { class: chatErrors.RateLimitError, type: 'insufficient_quota', code: 'insufficient_quota' },
    messages: { class: messagesErrors.RateLimitError, type: 'rate_limit_error' },
    generateContent: 'RESOURCE_EXHAUSTED',
    message: /Refused with insufficient_quota/,
    shouldRetry: 'false',
  },
  {
    status: 500,
    name: 'a bug in the gateway, of which nothing is told',
    request: { model: 'broken' },
    chat: { class: chatErrors.InternalServerError, type: 'server_error', code: 'internal_error' },
    messages: { class: messagesErrors.InternalServerError, type: 'api_error' },
    generateContent: 'INTERNAL',
    message: /^(?:500 )?The gateway failed while handling this request\.$/,
  },
  {
    status: 502,
    name: 'a provider that fails',
    request: { model: 'via-generate-content', text: '!status=500' },
    chat: { class: chatErrors.InternalServerError, type: 'server_error', code: 'upstream_error' },
    messages: { class: messagesErrors.InternalServerError, type: 'api_error' },
    generateContent: 'UNAVAILABLE',
    message: /answers 500, as you asked/,
  },
  {
    status: 502,
    name: 'a provider that does not know the channel’s key: the client’s own is fine',
    request: { model: 'via-generate-content', text: '!status=401' },
    chat: { class: chatErrors.InternalServerError, type: 'server_error', code: 'upstream_error' },
    messages: { class: messagesErrors.InternalServerError, type: 'api_error' },
    generateContent: 'UNAVAILABLE',
    message: /refused the credentials of the channel/,
  },
  {
    status: 502,
    name: 'a provider that answers with a web page',
    request: { model: 'via-chat-completions', text: '!html' },
    chat: { class: chatErrors.InternalServerError, type: 'server_error', code: 'upstream_error' },
    messages: { class: messagesErrors.InternalServerError, type: 'api_error' },
    generateContent: 'UNAVAILABLE',
    message: /neither JSON nor a stream/,
  },
  {
    status: 503,
    name: 'a model that no channel serves',
    request: { model: 'nobody-serves-this' },
    chat: {
      class: chatErrors.InternalServerError,
      type: 'service_unavailable_error',
      code: 'no_available_channel',
      param: 'model',
    },
    messages: { class: messagesErrors.ServiceUnavailableError, type: 'api_error' },
    generateContent: 'UNAVAILABLE',
    message: /nobody-serves-this/,
    shouldRetry: 'false',
  },
  {
    status: 503,
    name: 'a provider that is overloaded',
    request: { model: 'via-messages', text: '!status=529 retry-after=3' },
    chat: {
      class: chatErrors.InternalServerError,
      type: 'service_unavailable_error',
      code: 'server_is_overloaded',
    },
    messages: { class: messagesErrors.ServiceUnavailableError, type: 'overloaded_error' },
    generateContent: 'UNAVAILABLE',
    message: /answers 529, as you asked/,
    retryAfter: '3',
  },
  {
    status: 503,
    name: 'something that the channel will never do',
    request: { model: 'refused-by-endpoint_not_supported' },
    chat: {
      class: chatErrors.InternalServerError,
      type: 'service_unavailable_error',
      code: 'endpoint_not_supported',
    },
    messages: { class: messagesErrors.ServiceUnavailableError, type: 'api_error' },
    generateContent: 'UNAVAILABLE',
    message: /Refused with endpoint_not_supported/,
    shouldRetry: 'false',
  },
  {
    status: 504,
    name: 'a provider that takes too long',
    request: { model: 'via-chat-completions', text: '!status=504' },
    chat: { class: chatErrors.InternalServerError, type: 'server_error', code: 'upstream_timeout' },
    messages: { class: messagesErrors.GatewayTimeoutError, type: 'timeout_error' },
    generateContent: 'DEADLINE_EXCEEDED',
    message: /answers 504, as you asked/,
  },
];

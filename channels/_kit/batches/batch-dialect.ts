/** Translates requests of the chat-completions batch and file API, and their responses, for a provider whose batch API differs. */
import {
  parseObject,
  type JsonObject,
  type JsonValue,
  type UpstreamRequest,
  type Call,
  type ChannelParts,
} from 'sluice';
import { answerOf, requestWhole, hasSucceeded } from '../jobs/jobs.ts';

/** Sends one request to a provider, as a channel does. */
export type Open = ChannelParts['open'];

/** Differences between a provider's batch API and that of chat completions. */
export interface BatchDialect {
  /** Path of batches. Default `/batches`. */
  readonly path?: string;
  /** End of the path that cancels a batch, behind its id. Default `/cancel`. */
  readonly cancel?: string;
  /** Translates the body that creates a batch. Default: unchanged. */
  request?(body: JsonObject): JsonObject;
  /** Translates a batch of the provider into one of chat completions. Default: unchanged. */
  answer?(batch: JsonObject): JsonObject;
  /** Sends requests below `/files` where the provider's file API differs. */
  files?(call: Call, request: UpstreamRequest, open: Open): ReturnType<Open>;
}

/** Translates requests for batches and their files, and sends all others unchanged. */
export function withBatchDialect(open: Open, dialect: BatchDialect): Open {
  return async (call, request) => {
    const { path, body, operation } = request;
    if (operation !== 'state') return open(call, request);
    if (dialect.files !== undefined && /^\/files(?:\/|$)/.test(path))
      return dialect.files(call, request, open);
    const [, rest] = /^\/batches((?:\/.*)?)$/.exec(path) ?? [];
    if (rest === undefined) return open(call, request);
    const parsed = rest === '' && typeof body === 'string' ? parseObject(body) : undefined;
    const step = await requestWhole(call, open, {
      ...request,
      path: (dialect.path ?? '/batches') + rest.replace(/\/cancel$/, dialect.cancel ?? '/cancel'),
      ...(parsed === undefined || dialect.request === undefined
        ? {}
        : { body: JSON.stringify(dialect.request(parsed)) }),
    });
    return hasSucceeded(step) ? answerOf(step, dialect.answer?.(step.body)) : answerOf(step);
  };
}

/** Sends a request for a file and translates the file object in the response. The content of a file passes unchanged. */
export async function describedFile(
  call: Call,
  request: UpstreamRequest,
  open: Open,
  describe: (file: JsonObject) => JsonObject,
): ReturnType<Open> {
  if (/^\/files\/[^/]+\/content$/.test(request.path)) return open(call, request);
  const step = await requestWhole(call, open, request);
  return hasSucceeded(step) ? answerOf(step, describe(step.body)) : answerOf(step);
}

/** Returns the Unix time in seconds of a date text or of a number of seconds; null if there is none. */
export function secondsOf(date: JsonValue | undefined): number | null {
  const seconds = typeof date === 'number' ? date : Math.floor(Date.parse(String(date)) / 1000);
  return Number.isFinite(seconds) ? seconds : null;
}

/** Returns the member `errors` of a batch: a list of messages; null if there is none. */
export function batchErrors(...sentences: readonly (JsonValue | undefined)[]): JsonValue {
  const messages = sentences.filter((one) => typeof one === 'string' && one !== '');
  if (messages.length === 0) return null;
  return { object: 'list', data: messages.map((message) => ({ message: message ?? null })) };
}

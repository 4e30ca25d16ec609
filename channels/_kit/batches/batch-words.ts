import {
  parseObject,
  type JsonObject,
  type JsonValue,
  type UpstreamRequest,
  type Call,
  type ChannelParts,
} from 'sluice';
import { answerOf, ask, went } from '../jobs/jobs.ts';

/** Sends one request to a provider, as a channel does. */
export type Open = ChannelParts['open'];

/** How a provider spells the batches of the chat-completions API that it has in words of its own. */
export interface BatchWords {
  /** Where its batches are. Default `/batches`. */
  readonly path?: string;
  /** What stands behind the id of one that is cancelled. Default `/cancel`. */
  readonly cancel?: string;
  /** What a batch is made with there. Default: the same. */
  request?(body: JsonObject): JsonObject;
  /** A batch that it describes, as the API has it. Default: the same. */
  answer?(told: JsonObject): JsonObject;
  /** Asks for files, below `/files`, where that is not as in the API. */
  files?(call: Call, request: UpstreamRequest, open: Open): ReturnType<Open>;
}

/** Sends what concerns batches and their files in the provider's words, and everything else as it is. */
export function inBatchWords(open: Open, words: BatchWords): Open {
  return async (call, request) => {
    const { path, body, operation } = request;
    if (operation !== 'state') return open(call, request);
    if (words.files !== undefined && /^\/files(?:\/|$)/.test(path)) return words.files(call, request, open);
    const [, rest] = /^\/batches((?:\/.*)?)$/.exec(path) ?? [];
    if (rest === undefined) return open(call, request);
    const asked = rest === '' && typeof body === 'string' ? parseObject(body) : undefined;
    const step = await ask(call, open, {
      ...request,
      path: (words.path ?? '/batches') + rest.replace(/\/cancel$/, words.cancel ?? '/cancel'),
      ...(asked === undefined || words.request === undefined
        ? {}
        : { body: JSON.stringify(words.request(asked)) }),
    });
    return went(step) ? answerOf(step, words.answer?.(step.body)) : answerOf(step);
  };
}

/** Asks for something of a file's, and gives its description in other words. What is no JSON, such as a file itself, is given as it comes. */
export async function describedFile(
  call: Call,
  request: UpstreamRequest,
  open: Open,
  describe: (told: JsonObject) => JsonObject,
): ReturnType<Open> {
  if (/^\/files\/[^/]+\/content$/.test(request.path)) return open(call, request);
  const step = await ask(call, open, request);
  return went(step) ? answerOf(step, describe(step.body)) : answerOf(step);
}

/** A time as the API has it, in seconds: of a date in words, or seconds already; null where there is none. */
export function secondsOf(told: JsonValue | undefined): number | null {
  const seconds = typeof told === 'number' ? told : Math.floor(Date.parse(String(told)) / 1000);
  return Number.isFinite(seconds) ? seconds : null;
}

/** The failures of a batch as the API has them: a list of sentences; null where there is none. */
export function batchErrors(...sentences: readonly (JsonValue | undefined)[]): JsonValue {
  const told = sentences.filter((one) => typeof one === 'string' && one !== '');
  if (told.length === 0) return null;
  return { object: 'list', data: told.map((message) => ({ message: message ?? null })) };
}

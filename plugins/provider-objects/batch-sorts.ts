import { isObject, parseObject, type JsonObject, type JsonValue, type Operation } from 'sluice';
import type { Question } from './ask.ts';
import type { ObjectFormat } from './collections.ts';

/** What one request of a batch has answered. */
export interface BatchAnswer {
  /** The reply, as the request would have got it by itself. */
  readonly reply: JsonObject;
  /** The model that the reply names. */
  readonly model: string | undefined;
}

/** A codec by which replies are read. */
export type CodecName = readonly [format: string, operation: Operation];

/** How one API tells of its batches. */
export interface BatchSort {
  /** True for a batch that has come to its end, however. */
  isOver(seen: JsonObject): boolean;
  /** Where the answers are: what to ask for lines of them. Absent where there are none, or the description has them itself. */
  results(seen: JsonObject, id: string): Question | undefined;
  /** Answers that stand in the description itself. */
  inline(seen: JsonObject): readonly JsonValue[];
  /** A line of the results; undefined for one that failed, which costs nothing. */
  answer(line: JsonObject): BatchAnswer | undefined;
  codec(known: JsonObject): CodecName;
  /** Ids of the files that a batch has left behind. */
  files(seen: JsonObject): readonly string[];
}

const codecs: Readonly<Record<string, CodecName>> = {
  '/v1/chat/completions': ['chat-completions', 'chat'],
  '/v1/responses': ['responses', 'chat'],
  '/v1/completions': ['text-completions', 'chat'],
  '/v1/embeddings': ['embeddings', 'embed'],
  '/v1/rerank': ['rerank', 'rerank'],
  '/v1/moderations': ['moderations', 'moderate'],
  '/v1/images/generations': ['images', 'generate-image'],
  '/v1/images/edits': ['images', 'edit-image'],
};

/** An endpoint as OpenAI writes it: others leave out the version, or write their own. */
export function endpointOf(told: string): string {
  return `/v1${told.replace(/^\/v\d+(?=\/)/, '')}`;
}

function codecAt(told: JsonValue | undefined): CodecName | undefined {
  const endpoint = typeof told === 'string' ? endpointOf(told) : '';
  return Object.hasOwn(codecs, endpoint) ? codecs[endpoint] : undefined;
}

/** The endpoint that a line of the chat-completions API is for. Some providers' lines name none: what is in them tells it then. */
export function endpointOfLine(
  { url }: JsonObject,
  { messages, input, documents }: JsonObject,
): string | undefined {
  if (typeof url === 'string') return url;
  if (messages !== undefined) return '/v1/chat/completions';
  if (documents !== undefined) return '/v1/rerank';
  return input === undefined ? undefined : '/v1/embeddings';
}

/** The member of a line that is its request. */
export function memberOfLine(format: ObjectFormat): 'request' | 'body' {
  return format === 'generate-content' ? 'request' : 'body';
}

/** The codec that reads the request of a line; undefined where its endpoint is not known. */
export function codecOfLine(format: ObjectFormat, line: JsonObject, body: JsonObject): CodecName | undefined {
  switch (format) {
    case 'chat-completions':
      return codecAt(endpointOfLine(line, body));
    case 'messages':
      return ['messages', 'chat'];
    case 'generate-content':
      return [
        'generate-content',
        body['content'] !== undefined && body['contents'] === undefined ? 'embed' : 'chat',
      ];
  }
}

const textOf = (value: JsonValue | undefined): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;

const ofChat: BatchSort = {
  isOver: ({ status }) =>
    status === 'completed' || status === 'failed' || status === 'expired' || status === 'cancelled',
  results(seen) {
    const file = textOf(seen['output_file_id']);
    return file === undefined
      ? undefined
      : { method: 'GET', path: `/files/${encodeURIComponent(file)}/content` };
  },
  inline: () => [],
  answer({ response }) {
    if (!isObject(response) || !isObject(response['body']) || Number(response['status_code']) >= 400)
      return undefined;
    return { reply: response['body'], model: textOf(response['body']['model']) };
  },
  codec: ({ endpoint }) => codecAt(endpoint) ?? ['chat-completions', 'chat'],
  files: (seen) =>
    [textOf(seen['output_file_id']), textOf(seen['error_file_id'])].filter((id) => id !== undefined),
};

const ofMessages: BatchSort = {
  isOver: ({ processing_status: status }) => status === 'ended',
  results: (seen, id) =>
    textOf(seen['results_url']) === undefined
      ? undefined
      : { method: 'GET', path: `/messages/batches/${id}/results` },
  inline: () => [],
  answer({ result }) {
    if (!isObject(result) || !isObject(result['message'])) return undefined;
    return { reply: result['message'], model: textOf(result['message']['model']) };
  },
  codec: () => ['messages', 'chat'],
  files: () => [],
};

/** Where a batch of this API says what it has made. */
function outputOf({ response, metadata }: JsonObject): JsonObject {
  if (isObject(response)) return response;
  return isObject(metadata) && isObject(metadata['output']) ? metadata['output'] : {};
}

const ends = new Set([
  'BATCH_STATE_SUCCEEDED',
  'BATCH_STATE_FAILED',
  'BATCH_STATE_CANCELLED',
  'BATCH_STATE_EXPIRED',
]);

const ofGenerateContent: BatchSort = {
  isOver: ({ done, metadata }) =>
    done === true || (isObject(metadata) && ends.has(String(metadata['state']))),
  results(seen) {
    const file = textOf(outputOf(seen)['responsesFile'])?.replace(/^files\//, '');
    return file === undefined
      ? undefined
      : { method: 'GET', path: `/files/${encodeURIComponent(file)}:download`, query: { alt: 'media' } };
  },
  inline(seen) {
    const { inlinedResponses, inlinedEmbedContentResponses } = outputOf(seen);
    const told = isObject(inlinedResponses) ? inlinedResponses : inlinedEmbedContentResponses;
    const list = isObject(told) ? told['inlinedResponses'] : undefined;
    return Array.isArray(list) ? (list as readonly JsonValue[]) : [];
  },
  answer({ response }) {
    if (!isObject(response)) return undefined;
    return { reply: response, model: textOf(response['modelVersion']) };
  },
  codec: ({ embeds }) => ['generate-content', embeds === true ? 'embed' : 'chat'],
  files(seen) {
    const file = textOf(outputOf(seen)['responsesFile'])?.replace(/^files\//, '');
    return file === undefined ? [] : [file];
  },
};

/** By the kind of object. */
export const batchSorts: Readonly<Record<string, BatchSort>> = {
  'chat-completions/batches': ofChat,
  'messages/messages/batches': ofMessages,
  'generate-content/batches': ofGenerateContent,
};

/** The answer in the text of a line; undefined for one that failed, and for a line that nobody can read. */
export function answerIn(text: string, sort: BatchSort): BatchAnswer | undefined {
  const line = parseObject(text);
  return line === undefined ? undefined : sort.answer(line);
}

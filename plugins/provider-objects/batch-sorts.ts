/** Describes the batches of each API: when one has ended, where its results are, and which codecs read its requests and responses. */
import { isObject, parseObject, type JsonObject, type JsonValue, type Operation } from 'sluice';
import type { ProviderRequest } from './send-request.ts';
import type { ObjectFormat } from './collections.ts';

/** Response to one request of a batch. */
export interface BatchAnswer {
  /** Body of the response, in the form that it has outside of a batch. */
  readonly reply: JsonObject;
  /** Model that the response names. */
  readonly model: string | undefined;
}

/** A codec by which replies are read. */
export type CodecName = readonly [format: string, operation: Operation];

/** Batches of one API. */
export interface BatchSort {
  /** Returns true for a batch that has ended, also one that failed or was cancelled. */
  isOver(seen: JsonObject): boolean;
  /** Returns the request for the lines of the results; undefined where there are none, or the description contains them. */
  results(seen: JsonObject, id: string): ProviderRequest | undefined;
  /** Returns the responses that the description contains. */
  inline(seen: JsonObject): readonly JsonValue[];
  /** Reads a line of the results; undefined for a request that failed, which costs nothing. */
  answer(line: JsonObject): BatchAnswer | undefined;
  codec(known: JsonObject): CodecName;
  /** Returns the ids of the files that the batch has created. */
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

/** Returns an endpoint in OpenAI's spelling, because other providers leave out the version or have their own. */
export function endpointOf(path: string): string {
  return `/v1${path.replace(/^\/v\d+(?=\/)/, '')}`;
}

function codecAt(path: JsonValue | undefined): CodecName | undefined {
  const endpoint = typeof path === 'string' ? endpointOf(path) : '';
  return Object.hasOwn(codecs, endpoint) ? codecs[endpoint] : undefined;
}

/** Returns the endpoint of a line in the OpenAI API. Where a provider's lines name none it is derived from the members of the request. */
export function endpointOfLine(
  { url }: JsonObject,
  { messages, input, documents }: JsonObject,
): string | undefined {
  if (typeof url === 'string') return url;
  if (messages !== undefined) return '/v1/chat/completions';
  if (documents !== undefined) return '/v1/rerank';
  return input === undefined ? undefined : '/v1/embeddings';
}

/** Returns the member of a line that is its request. */
export function memberOfLine(format: ObjectFormat): 'request' | 'body' {
  return format === 'generate-content' ? 'request' : 'body';
}

/** Returns the codec that reads the request of a line; undefined where its endpoint is not known. */
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

/** Returns the object that names the results of a batch of generateContent. */
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
    const container = isObject(inlinedResponses) ? inlinedResponses : inlinedEmbedContentResponses;
    const list = isObject(container) ? container['inlinedResponses'] : undefined;
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

/** Batches of each API, by the kind of object. */
export const batchSorts: Readonly<Record<string, BatchSort>> = {
  'chat-completions/batches': ofChat,
  'messages/messages/batches': ofMessages,
  'generate-content/batches': ofGenerateContent,
};

/** Reads the response in the text of a line; undefined for a request that failed, and for a line that is no JSON object. */
export function answerIn(text: string, sort: BatchSort): BatchAnswer | undefined {
  const line = parseObject(text);
  return line === undefined ? undefined : sort.answer(line);
}

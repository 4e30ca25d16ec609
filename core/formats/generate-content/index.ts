import { wrongValue } from '../../sdk/errors.ts';
import type { Format, Framing, Operation, Route, RouteParams } from '../../sdk/format.ts';
import { aliases } from './aliases.ts';
import { chat } from './codec.ts';
import { countTokens } from './count-tokens.ts';
import { embed } from './embed.ts';
import { errorReply } from './errors.ts';
import { images } from './images/index.ts';
import { models } from './models.ts';
import { speak } from './speak.ts';
import { videos } from './videos/index.ts';
import { formatName } from './wire.ts';

/** Paths of the methods of a model: both versions, with `tunedModels/` as an alias of `models/`. */
const folders = ['/v1beta/models', '/v1/models', '/v1beta/tunedModels', '/v1/tunedModels'];

type Matched = Readonly<Record<string, string>>;
type Headers = Readonly<Record<string, string | undefined>>;

/** Returns the framing that `alt` and `Accept` ask of a stream. Throws 400 for one that is not served. */
function framingOf(query: URLSearchParams, headers: Headers): Framing {
  const alt = (query.get('alt') ?? query.get('$alt') ?? '').toLowerCase();
  if (alt === 'sse') return 'sse';
  if (alt === 'json' || alt.startsWith('json;')) return 'json-array';
  if (alt !== '') throw wrongValue('alt', 'sse or json');
  return headers.accept?.toLowerCase().includes('text/event-stream') ? 'sse' : 'ndjson';
}

function method(verb: string, operation: Operation, stream: boolean): readonly Route[] {
  const params = (matched: Matched, query: URLSearchParams, headers: Headers): RouteParams => {
    const framing = framingOf(query, headers);
    return { model: modelName(matched.model ?? ''), stream, framing: stream ? framing : 'none' };
  };
  return folders.map((folder) => ({ method: 'POST', path: `${folder}/*model\\:${verb}`, operation, params }));
}

/** Returns the name without `models/`, however often the client wrote it. */
function modelName(matched: string): string {
  return matched.replace(/^(?:models\/)+/, '');
}

/** Everything this format answers. `GET /v1/models` is shared with other formats and belongs to none. */
const routes: readonly Route[] = [
  ...method('generateContent', 'chat', false),
  ...method('streamGenerateContent', 'chat', true),
  ...method('countTokens', 'count-tokens', false),
  ...method('predictLongRunning', 'create-video', false),
  ...method('embedContent', 'embed', false),
  ...method('batchEmbedContents', 'embed', false),
  ...method('predict', 'embed', false),
  { method: 'GET', path: '/v1beta/models', operation: 'list-models' },
  {
    method: 'GET',
    path: '/v1beta/models/*model',
    operation: 'get-model',
    params: (matched) => ({ model: modelName(matched.model ?? '') }),
  },
];

const generateContent: Format = {
  name: formatName,
  routes,
  codecs: { chat, 'count-tokens': countTokens, embed, speak, ...images, ...videos },
  errorReply,
  replyHeaders: (requestId) => ({ 'x-request-id': requestId }),
  models,
  aliases,
};

/** The generateContent format: `/v1beta/models/{model}:generateContent`, its stream, its counts and its model list. */
export default generateContent;

/** Lists of models of generateContent. */
import { wrongValue } from '../../sdk/errors.ts';
import type { ListedModel } from '../../model/event.ts';
import type { JsonObject } from '../../model/json.ts';
import type { ModelListing } from '../../sdk/format.ts';

const usualSize = 50;
const largestSize = 1000;

/** The model list, page by page. A page token names the last model of the page before. */
export const models: ModelListing = {
  list(all, query) {
    const size = pageSize(query.get('pageSize') ?? query.get('page_size'));
    const start = pageStart(all, query.get('pageToken') ?? query.get('page_token'));
    const page = all.slice(start, start + size);
    const last = page.at(-1);
    const more = start + size < all.length && last !== undefined;
    return {
      models: page.map(one),
      ...(more ? { nextPageToken: Buffer.from(last.id).toString('base64url') } : {}),
    };
  },
  one,
};

/** Methods of a model, by operation. */
const methods: Readonly<Record<string, readonly string[]>> = {
  chat: ['generateContent', 'streamGenerateContent', 'countTokens'],
  embed: ['embedContent', 'batchEmbedContents'],
  speak: ['generateContent', 'streamGenerateContent'],
  'generate-image': ['generateContent', 'predict'],
  'create-video': ['predictLongRunning'],
};

function one(model: ListedModel): JsonObject {
  return {
    name: `models/${model.id}`,
    baseModelId: model.id,
    version: '001',
    displayName: model.id,
    description: '',
    inputTokenLimit: model.inputLimit ?? 0,
    outputTokenLimit: model.outputLimit ?? 0,
    supportedGenerationMethods: methods[model.operation ?? 'chat'] ?? [],
    ...(model.thinking === undefined ? {} : { thinking: model.thinking }),
  };
}

/** Returns the page size. Larger numbers than the largest count as the largest, as at the provider. */
function pageSize(text: string | null): number {
  if (text === null || text === '') return usualSize;
  const size = Number(text);
  if (!Number.isInteger(size) || size < 0) throw wrongValue('pageSize', 'a whole number, 0 or more');
  return size === 0 ? usualSize : Math.min(size, largestSize);
}

function pageStart(all: readonly ListedModel[], token: string | null): number {
  if (token === null || token === '') return 0;
  const last = Buffer.from(token, 'base64url').toString();
  const index = all.findIndex(({ id }) => id === last);
  if (index < 0) throw wrongValue('pageToken', 'the nextPageToken of an earlier page');
  return index + 1;
}

/** Files, batches and other objects that a provider keeps, each for the key that made it. */
import { z } from 'zod';
import { definePlugin, openObjectStore, type Call, type InternalTools } from 'sluice/internal';
import type { Channel } from './core-types.ts';
import type { ObjectServices } from './services.ts';
import { addBatches } from './batches.ts';
import { addEndpoints } from './endpoints.ts';
import { addFileSearch } from './file-search.ts';
import { pathAdder } from './paths.ts';
import { pinnedCall, refers, type Finding } from './pin.ts';
import { Poller } from './poller.ts';
import { addResumable } from './resumable.ts';
import { checkedSession } from './session.ts';

const mebibyte = 1024 * 1024;
const milliseconds = z.int().min(10).max(86_400_000);

/** Nearly all providers give batches at half the price. */
const usualShare = 0.5;

const options = z.strictObject({
  /** Bytes of one uploaded body. */
  fileSize: z
    .int()
    .min(1024)
    .default(2048 * mebibyte),
  /** Bytes of a provider's answer that is read whole: the description of an object, with the results where they stand in it. */
  answerSize: z
    .int()
    .min(1024)
    .default(64 * mebibyte),
  /** What the requests of a batch cost, as a share of what they cost by themselves. Default: what the channel says of its provider, else half. */
  batchShare: z.number().min(0).max(1).optional(),
  /**
   * What it costs to keep a million tokens of a cached content for an hour, in dollars, by patterns of the provider's names of models; the
   * longest that fits. 0: nothing is charged. Default: as https://ai.google.dev/gemini-api/docs/pricing says of the Flash and Flash-Lite models
   * from 2.5 to 3.5, and of 2.5, 3 and 3.1 Pro; new models may cost otherwise, and so may priority.
   */
  cacheStorage: z
    .record(z.string(), z.number().min(0).max(1000))
    .default({ 'gemini-*': 1, 'gemini-*pro*': 4.5 }),
  /** When providers are asked how a batch is. Times are in milliseconds; each pause is half as long again as the one before. */
  poll: z
    .strictObject({
      first: milliseconds.default(30_000).describe('first pause'),
      most: milliseconds.default(300_000).describe('longest pause'),
      parallel: z.int().min(1).max(100).default(4).describe('questions of this process at the same time'),
      patience: milliseconds.default(300_000).describe('for one answer, with all results'),
    })
    .prefault({}),
  /** `refuse`: ids in requests must be the key's own. `pass`: those that nobody has here go to the provider, as what was made elsewhere. */
  foreign: z.enum(['refuse', 'pass']).default('refuse'),
  /** Where clients reach this gateway (`https://gateway.example.com`), for addresses of uploads and results. Default: where a client did. */
  publicUrl: z
    .url({ protocol: /^https?$/ })
    .transform((url) => url.replace(/\/+$/, ''))
    .optional(),
});

/**
 * Callers keep files, batches, caches and the like at the providers that have them, each visible to the key that made it alone, and use them
 * by their ids in later calls, which go where these are kept. The results of batches are charged once, when a batch has come to its end.
 */
export default definePlugin({
  name: 'provider-objects',
  stage: 'admit',
  before: ['quota'],
  options,
  setup({ fileSize, answerSize, batchShare, cacheStorage, poll, foreign, publicUrl }, tools: InternalTools) {
    const { log, catalog, onClose } = tools;
    const store = openObjectStore(tools, (error) =>
      log.error({ error }, 'what is known of an object is damaged'),
    );
    const shareOf = (channel: Channel): number => batchShare ?? channel.batchShare ?? usualShare;
    const poller = new Poller(store, tools, { ...poll, shareOf, answerSize });
    poller.start();
    onClose(() => poller.close());
    const finding: Finding = { store, catalog, foreign: foreign === 'pass' };
    const services: ObjectServices = {
      store,
      finding,
      poller,
      tools,
      fileSize,
      answerSize,
      shareOf,
      cacheStorage,
      publicUrl,
    };
    const add = pathAdder(services);
    addBatches(add, services);
    addResumable(services);
    addFileSearch(add, services);
    addEndpoints(add, services);

    return function providerObjects(call: Call, next) {
      if (call.operation === 'realtime') return checkedSession(call, next, finding);
      return refers(call) ? pinnedCall(call, next, finding) : next(call);
    };
  },
});

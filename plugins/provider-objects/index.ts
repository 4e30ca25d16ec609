/** Serves files, batches and other objects that providers store. Each is visible only to the key that created it. */
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

/** Default price of batches, as a share of the normal price: that of nearly all providers. */
const usualShare = 0.5;

const options = z.strictObject({
  /** Maximum bytes of an upload. */
  fileSize: z
    .int()
    .min(1024)
    .default(2048 * mebibyte),
  /** Maximum bytes of a provider's response that is buffered: the description of an object, and results that are part of it. */
  answerSize: z
    .int()
    .min(1024)
    .default(64 * mebibyte),
  /** Price of requests in a batch, as a share of their normal price. Default: the share of the channel, or 0.5. */
  batchShare: z.number().min(0).max(1).optional(),
  /**
   * Price of storing a million tokens of cached content for an hour, in dollars, by patterns of the provider's model names. The longest
   * matching pattern applies. 0: not charged. Default: the prices in https://ai.google.dev/gemini-api/docs/pricing of the Flash and
   * Flash-Lite models from 2.5 to 3.5, and of 2.5, 3 and 3.1 Pro. Newer models and the priority tier may have other prices.
   */
  cacheStorage: z
    .record(z.string(), z.number().min(0).max(1000))
    .default({ 'gemini-*': 1, 'gemini-*pro*': 4.5 }),
  /** Polling of the state of batches at providers. Times are in milliseconds. Each pause is 1.5 times as long as the one before. */
  poll: z
    .strictObject({
      first: milliseconds.default(30_000).describe('time before the first poll'),
      most: milliseconds.default(300_000).describe('maximum time between two polls'),
      parallel: z
        .int()
        .min(1)
        .max(100)
        .default(4)
        .describe('maximum number of polls of this process that run at the same time'),
      patience: milliseconds
        .default(300_000)
        .describe('timeout of one poll, with the download of all results'),
    })
    .prefault({}),
  /**
   * Handling of unknown object ids in requests. `refuse`: ids must belong to the key. `pass`: ids that no key of the gateway has are sent
   * to the provider, for objects that were created elsewhere.
   */
  foreign: z.enum(['refuse', 'pass']).default('refuse'),
  /**
   * Base URL at which clients reach this gateway (`https://gateway.example.com`), for the URLs of uploads and results. Default: the URL of
   * the client's request.
   */
  publicUrl: z
    .url({ protocol: /^https?$/ })
    .transform((url) => url.replace(/\/+$/, ''))
    .optional(),
});

/**
 * Serves files, batches, caches and similar objects that providers store. Each is visible only to the key that created it. Later calls that
 * use an object by its id go to the provider that stores it. Results of a batch are charged once, when the batch has ended.
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

/** Serves videos: creates tasks, polls providers until they are done, and delivers their content. */
import { z } from 'zod';
import { definePlugin, openTaskStore, type Call, type InternalTools } from 'sluice/internal';
import type { Task } from './core-types.ts';
import { createTask } from './create.ts';
import { addEndpoints } from './endpoints.ts';
import { Poller } from './poller.ts';
import { shownTask } from './shown.ts';

const secondsOfDay = 86_400;
const milliseconds = z.int().min(10).max(3_600_000);

const options = z.strictObject({
  /** Polling of the state of videos at providers. Times are in milliseconds. Each pause is 1.5 times as long as the one before. */
  poll: z
    .strictObject({
      first: milliseconds.default(5_000).describe('time before the first poll'),
      most: milliseconds.default(15_000).describe('maximum time between two polls'),
      parallel: z
        .int()
        .min(1)
        .max(1000)
        .default(16)
        .describe('maximum number of polls of this process that run at the same time'),
      patience: milliseconds.default(30_000).describe('timeout of one poll'),
    })
    .prefault({}),
  /** Milliseconds for which clients that poll get the last known state, without a request to the provider. */
  fresh: z.int().min(0).max(3_600_000).default(5_000),
  /** Seconds after which an unfinished video counts as failed and is not charged. */
  deadline: z
    .number()
    .positive()
    .max(30 * secondsOfDay)
    .default(3_600),
  /** Days for which tasks are stored. */
  retention: z.number().positive().max(3_650).default(30),
  /**
   * Delivery of videos. `proxy`: through the gateway, so that clients do not see the provider's URLs. `redirect`: clients are redirected to
   * the provider's URL.
   */
  delivery: z.enum(['proxy', 'redirect']).default('proxy'),
  /**
   * Base URL at which clients reach this gateway (`https://gateway.example.com`), for the URLs of videos. Default: the URL of the client's
   * request.
   */
  publicUrl: z
    .url({ protocol: /^https?$/ })
    .transform((url) => url.replace(/\/+$/, ''))
    .optional(),
  /** Maximum bytes of an image that is sent with a request. */
  reference: z
    .int()
    .min(1024)
    .default(20 * 1024 * 1024),
});

/**
 * Serves video generation in every video format, on any channel that supports it. Each video is a task with an id of the gateway. Only the
 * key that created it can read it, in the same format or another. A video is charged when it is created, and refunded once if it fails.
 */
export default definePlugin({
  name: 'video-tasks',
  stage: 'admit',
  // Runs before these plugins, because a remix has the model of the first video, and because the charge is stored with the task.
  before: ['model-alias', 'model-access', 'quota'],
  options,
  setup(chosen, tools: InternalTools) {
    const { log, onClose } = tools;
    const store = openTaskStore(tools, (error) => log.error({ error }, 'a video task is damaged'), onClose);
    const poller = new Poller(store, tools, chosen.poll);
    poller.start();
    onClose(() => poller.close());
    const delivery = { delivery: chosen.delivery, publicUrl: chosen.publicUrl };
    const shown = (call: Call, task: Task): Task => shownTask(call, task, delivery, tools);
    addEndpoints({
      store,
      poller,
      tools,
      shown,
      endpoint: tools.endpoint,
      fresh: chosen.fresh,
      patience: Math.min(10_000, chosen.poll.patience),
      delivery: chosen.delivery,
    });
    const creating = {
      store,
      poller,
      tools,
      shown,
      // PostgreSQL refuses fractions of milliseconds.
      deadline: Math.round(chosen.deadline * 1000),
      retention: Math.round(chosen.retention * secondsOfDay * 1000),
      reference: chosen.reference,
    };

    return function videoTasks(call: Call, next) {
      return call.operation === 'create-video' ? createTask(call, next, creating) : next(call);
    };
  },
});

/** Videos: tasks that are asked for until they are done, and their content. */
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
  /** When providers are asked how a video is. Times are in milliseconds; each pause is half as long again as the one before. */
  poll: z
    .strictObject({
      first: milliseconds.default(5_000).describe('first pause'),
      most: milliseconds.default(15_000).describe('longest pause'),
      parallel: z.int().min(1).max(1000).default(16).describe('questions of this process at the same time'),
      patience: milliseconds.default(30_000).describe('for one answer'),
    })
    .prefault({}),
  /** Milliseconds for which an answer of a provider is good enough for a client that asks. */
  fresh: z.int().min(0).max(3_600_000).default(5_000),
  /** Seconds after which a video that is not finished has failed, and is not paid for. */
  deadline: z
    .number()
    .positive()
    .max(30 * secondsOfDay)
    .default(3_600),
  /** Days for which tasks are kept. */
  retention: z.number().positive().max(3_650).default(30),
  /** `proxy`: videos come through the gateway, and nobody sees the provider's addresses. `redirect`: clients are sent there. */
  delivery: z.enum(['proxy', 'redirect']).default('proxy'),
  /** Where clients reach this gateway (`https://gateway.example.com`), for the addresses of videos. Default: where a client did. */
  publicUrl: z
    .url({ protocol: /^https?$/ })
    .transform((url) => url.replace(/\/+$/, ''))
    .optional(),
  /** Bytes of an image that is sent along as a file. */
  reference: z
    .int()
    .min(1024)
    .default(20 * 1024 * 1024),
});

/**
 * Callers make videos in every format for them, on any channel that does: each gets a task with an id of the gateway's, which the caller
 * alone can ask for, in the format it was made in or in another. A video is paid for when it is asked for; what fails is given back, once.
 */
export default definePlugin({
  name: 'video-tasks',
  stage: 'admit',
  // A video that is made anew has the model of the first; what is charged is kept with the task.
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

import { of } from 'rxjs';
import {
  GatewayError,
  wrongType,
  wrongValue,
  missingValue,
  type Endpoint,
  type GatewayEvent,
  type JsonObject,
} from 'sluice';
import { advance, isFinished, reportOf, type Call, type InternalTools } from 'sluice/internal';
import type { Task, TaskStore } from './core-types.ts';
import { contentOf, partIn, type ContentTools } from './content.ts';
import { ownerOf } from './owner.ts';

/** What the endpoints need. */
export interface TaskEndpoints extends ContentTools {
  readonly store: TaskStore;
  readonly endpoint: InternalTools['endpoint'];
  /** Milliseconds: how old an answer of a provider may be, and how long a client waits for a new one. */
  readonly fresh: number;
  readonly patience: number;
  readonly shown: (call: Call, task: Task) => Task;
}

/** Adds the paths that show tasks and end them, in every format for videos. Another caller's look as if they did not exist. */
export function addEndpoints(around: TaskEndpoints): void {
  const { store, poller, tools, shown, fresh, patience } = around;

  const found = async (call: Call, id: string): Promise<Task> => {
    const task = await store.find(ownerOf(call), id);
    if (task === undefined) throw notFound(id);
    return task;
  };
  /** As it is now: the provider is asked where nobody has done so lately. */
  const current = async (call: Call, id: string): Promise<Task> => {
    const task = await found(call, id);
    return isFinished(task) || Date.now() - Math.max(task.askedAt, task.createdAt) < fresh
      ? task
      : poller.refresh(task, patience);
  };
  const bodyOf = (call: Call, format: string, task: Task): JsonObject => {
    const encoder = tools.format(format)?.codecs['get-video']?.encodeWhole(call.replyContext());
    if (encoder === undefined) throw new Error(`The format ${format} has no videos.`);
    encoder.event({ type: 'result', value: reportOf(shown(call, task)) });
    return encoder.end();
  };
  const cancelled = async (task: Task): Promise<Task> => {
    await poller.cancel(task);
    const over = advance(task, { id: task.upstreamId, state: 'cancelled' }, Date.now());
    await poller.finish(over);
    return over;
  };
  const add = (
    format: string,
    method: Endpoint['method'],
    path: string,
    handle: (call: Call, params: Readonly<Record<string, string>>) => Promise<JsonObject>,
  ): void =>
    around.endpoint({
      method,
      path,
      format,
      handle: async (call: Call, params) =>
        of<GatewayEvent>({ type: 'result', value: await handle(call, params) }),
    });
  const addStatus = (format: string, path: string): void =>
    add(format, 'GET', path, async (call, { id = '' }) => bodyOf(call, format, await current(call, id)));

  addStatus('videos', '/v1/videos/:id');
  addStatus('video-generations', '/v1/video/generations/:id');
  addStatus('ark', '/api/v3/contents/generations/tasks/:id');
  addStatus('vidu', '/ent/v2/tasks/:id/creations');
  for (const kind of ['text2video', 'image2video']) addStatus('kling', `/kling/v1/videos/${kind}/:id`);
  for (const version of ['v1', 'v1beta']) addStatus('generate-content', `/${version}/operations/:id`);

  add('jimeng', 'POST', '/jimeng', async (call) => {
    const { task_id: id } = call.body;
    if (call.wire.query.get('Action') !== 'CVSync2AsyncGetResult')
      throw wrongValue('Action', 'CVSync2AsyncSubmitTask or CVSync2AsyncGetResult');
    if (id === undefined) throw missingValue('task_id');
    if (typeof id !== 'string') throw wrongType('task_id', 'a string');
    return bodyOf(call, 'jimeng', await current(call, id));
  });

  around.endpoint({
    method: 'GET',
    path: '/v1/videos/:id/content',
    format: 'videos',
    handle: async (call: Call, { id = '' }) => {
      const part = partIn(call.wire.query);
      return contentOf(call, await current(call, id), part, around);
    },
  });

  add('videos', 'GET', '/v1/videos', async (call) => {
    const { query } = call.wire;
    const order = query.get('order') ?? 'desc';
    if (order !== 'asc' && order !== 'desc') throw wrongValue('order', 'asc or desc');
    const after = query.get('after');
    const page = await store.list(ownerOf(call), {
      order,
      limit: numberIn(query, 'limit', 20, 100),
      ...(after === null || after === '' ? {} : { after }),
    });
    if (page === undefined) throw wrongValue('after', 'the id of a video in this list');
    const data = page.tasks.map((task) => bodyOf(call, 'videos', task));
    return {
      object: 'list',
      data,
      first_id: data[0]?.id ?? null,
      last_id: data.at(-1)?.id ?? null,
      has_more: page.hasMore,
    };
  });

  add('ark', 'GET', '/api/v3/contents/generations/tasks', async (call) => {
    const tasks = await paged(call, 'ark', 'page_num', 'page_size');
    return { items: tasks.map((task) => bodyOf(call, 'ark', task)), total: tasks.length };
  });
  for (const kind of ['text2video', 'image2video']) {
    add('kling', 'GET', `/kling/v1/videos/${kind}`, async (call) => {
      const tasks = (await paged(call, 'kling', 'pageNum', 'pageSize')).filter(
        ({ images }) => images > 0 === (kind === 'image2video'),
      );
      const data = tasks.map((task) => bodyOf(call, 'kling', task).data ?? null);
      return { code: 0, message: 'SUCCEED', request_id: call.id, data };
    });
  }
  const paged = async (call: Call, format: string, page: string, size: string): Promise<readonly Task[]> => {
    const { query } = call.wire;
    const limit = numberIn(query, size, 20, 500);
    const skip = (numberIn(query, page, 1, 1000) - 1) * limit;
    return (await store.list(ownerOf(call), { order: 'desc', limit, skip, format }))?.tasks ?? [];
  };

  add('videos', 'DELETE', '/v1/videos/:id', async (call, { id = '' }) => {
    const task = await found(call, id);
    if (isFinished(task)) await poller.cancel(task).catch(() => {});
    else await cancelled(task);
    if (!(await store.remove(task.owner, id))) throw notFound(id);
    return { id, object: 'video.deleted', deleted: true };
  });
  add('ark', 'DELETE', '/api/v3/contents/generations/tasks/:id', async (call, { id = '' }) => {
    const task = await found(call, id);
    if (isFinished(task)) await store.remove(task.owner, id);
    else await cancelled(task);
    return {};
  });
  add('vidu', 'POST', '/ent/v2/tasks/:id/cancel', async (call, { id = '' }) => {
    const task = await found(call, id);
    if (isFinished(task))
      throw new GatewayError('invalid_request', 'This task has come to its end: nothing can be cancelled.');
    await cancelled(task);
    return {};
  });
}

function numberIn(query: URLSearchParams, name: string, usual: number, most: number): number {
  const text = query.get(name);
  if (text === null || text === '') return usual;
  if (!/^\d{1,6}$/.test(text)) throw wrongType(name, 'an integer');
  const number = Number(text);
  if (number < 1 || number > most) throw wrongValue(name, `between 1 and ${most}`);
  return number;
}

function notFound(id: string): GatewayError {
  return new GatewayError('not_found', `Video with id '${id.slice(0, 200)}' not found.`);
}

/** Endpoints of video tasks in all formats: status, content, lists, cancellation and deletion. */
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

/** Services and options of the endpoints. */
export interface TaskEndpoints extends ContentTools {
  readonly store: TaskStore;
  readonly endpoint: InternalTools['endpoint'];
  /** Maximum age of a stored state, and maximum wait of a client for a new one, in milliseconds. */
  readonly fresh: number;
  readonly patience: number;
  readonly shown: (call: Call, task: Task) => Task;
}

/** Adds the endpoints. Tasks of other callers are reported as not found. */
export function addEndpoints(around: TaskEndpoints): void {
  const tasks = new OwnTasks(around);
  addStatuses(tasks);
  addContent(around, tasks);
  addLists(around, tasks);
  addEnds(around, tasks);
}

function addStatuses(tasks: OwnTasks): void {
  const addStatus = (format: string, path: string): void =>
    tasks.add(format, 'GET', path, async (call, { id = '' }) =>
      tasks.bodyOf(call, format, await tasks.current(call, id)),
    );

  addStatus('videos', '/v1/videos/:id');
  addStatus('video-generations', '/v1/video/generations/:id');
  addStatus('ark', '/api/v3/contents/generations/tasks/:id');
  addStatus('vidu', '/ent/v2/tasks/:id/creations');
  for (const kind of ['text2video', 'image2video']) addStatus('kling', `/kling/v1/videos/${kind}/:id`);
  for (const version of ['v1', 'v1beta']) addStatus('generate-content', `/${version}/operations/:id`);

  tasks.add('jimeng', 'POST', '/jimeng', async (call) => {
    const { task_id: id } = call.body;
    if (call.wire.query.get('Action') !== 'CVSync2AsyncGetResult')
      throw wrongValue('Action', 'CVSync2AsyncSubmitTask or CVSync2AsyncGetResult');
    if (id === undefined) throw missingValue('task_id');
    if (typeof id !== 'string') throw wrongType('task_id', 'a string');
    return tasks.bodyOf(call, 'jimeng', await tasks.current(call, id));
  });
}

function addContent(around: TaskEndpoints, tasks: OwnTasks): void {
  around.endpoint({
    method: 'GET',
    path: '/v1/videos/:id/content',
    format: 'videos',
    handle: async (call: Call, { id = '' }) => {
      const part = partIn(call.wire.query);
      return contentOf(call, await tasks.current(call, id), part, around);
    },
  });
}

function addLists({ store }: TaskEndpoints, tasks: OwnTasks): void {
  tasks.add('videos', 'GET', '/v1/videos', async (call) => {
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
    const data = page.tasks.map((task) => tasks.bodyOf(call, 'videos', task));
    return {
      object: 'list',
      data,
      first_id: data[0]?.id ?? null,
      last_id: data.at(-1)?.id ?? null,
      has_more: page.hasMore,
    };
  });

  tasks.add('ark', 'GET', '/api/v3/contents/generations/tasks', async (call) => {
    const page = await tasks.paged(call, 'ark', 'page_num', 'page_size');
    return { items: page.map((task) => tasks.bodyOf(call, 'ark', task)), total: page.length };
  });
  for (const kind of ['text2video', 'image2video']) {
    tasks.add('kling', 'GET', `/kling/v1/videos/${kind}`, async (call) => {
      const page = (await tasks.paged(call, 'kling', 'pageNum', 'pageSize')).filter(
        ({ images }) => images > 0 === (kind === 'image2video'),
      );
      const data = page.map((task) => tasks.bodyOf(call, 'kling', task).data ?? null);
      return { code: 0, message: 'SUCCEED', request_id: call.id, data };
    });
  }
}

/** Adds the paths that cancel and delete. */
function addEnds({ store, poller }: TaskEndpoints, tasks: OwnTasks): void {
  tasks.add('videos', 'DELETE', '/v1/videos/:id', async (call, { id = '' }) => {
    const task = await tasks.found(call, id);
    if (isFinished(task)) await poller.cancel(task).catch(() => {});
    else await tasks.cancelled(task);
    if (!(await store.remove(task.owner, id))) throw notFound(id);
    return { id, object: 'video.deleted', deleted: true };
  });
  tasks.add('ark', 'DELETE', '/api/v3/contents/generations/tasks/:id', async (call, { id = '' }) => {
    const task = await tasks.found(call, id);
    if (isFinished(task)) await store.remove(task.owner, id);
    else await tasks.cancelled(task);
    return {};
  });
  tasks.add('vidu', 'POST', '/ent/v2/tasks/:id/cancel', async (call, { id = '' }) => {
    const task = await tasks.found(call, id);
    if (isFinished(task))
      throw new GatewayError('invalid_request', 'This task has ended and cannot be cancelled.');
    await tasks.cancelled(task);
    return {};
  });
}

/** Finds the tasks of a caller, and encodes them in the client's format. */
class OwnTasks {
  readonly #around: TaskEndpoints;

  constructor(around: TaskEndpoints) {
    this.#around = around;
  }

  async found(call: Call, id: string): Promise<Task> {
    const task = await this.#around.store.find(ownerOf(call), id);
    if (task === undefined) throw notFound(id);
    return task;
  }

  /** Returns a task, whose state is requested from the provider where the stored one is too old. */
  async current(call: Call, id: string): Promise<Task> {
    const task = await this.found(call, id);
    return isFinished(task) || Date.now() - Math.max(task.polledAt, task.createdAt) < this.#around.fresh
      ? task
      : this.#around.poller.refresh(task, this.#around.patience);
  }

  bodyOf(call: Call, format: string, task: Task): JsonObject {
    const encoder = this.#around.tools.format(format)?.codecs['get-video']?.encodeWhole(call.replyContext());
    if (encoder === undefined) throw new Error(`The format ${format} does not support videos.`);
    encoder.event({ type: 'result', value: reportOf(this.#around.shown(call, task)) });
    return encoder.end();
  }

  async cancelled(task: Task): Promise<Task> {
    await this.#around.poller.cancel(task);
    const over = advance(task, { id: task.upstreamId, state: 'cancelled' }, Date.now());
    await this.#around.poller.finish(over);
    return over;
  }

  add(
    format: string,
    method: Endpoint['method'],
    path: string,
    handle: (call: Call, params: Readonly<Record<string, string>>) => Promise<JsonObject>,
  ): void {
    return this.#around.endpoint({
      method,
      path,
      format,
      handle: async (call: Call, params) =>
        of<GatewayEvent>({ type: 'result', value: await handle(call, params) }),
    });
  }

  async paged(call: Call, format: string, page: string, size: string): Promise<readonly Task[]> {
    const { query } = call.wire;
    const limit = numberIn(query, size, 20, 500);
    const skip = (numberIn(query, page, 1, 1000) - 1) * limit;
    return (
      (await this.#around.store.list(ownerOf(call), { order: 'desc', limit, skip, format }))?.tasks ?? []
    );
  }
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

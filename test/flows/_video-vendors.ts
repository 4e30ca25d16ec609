import type { ServerResponse } from 'node:http';
import type { SeenRequest } from '../support/upstream.ts';

type Json = Record<string, unknown>;
/** State of a scripted task. */
export type Stage = 'queued' | 'in_progress' | 'completed' | 'failed';

/** Provider of videos, with its requests and responses. */
export interface Vendor {
  /** The channel kind, and the file it is in. */
  readonly kind: string;
  readonly key: string;
  /** Below the scripted provider's address. */
  readonly base: string;
  readonly model: string;
  /** Requests of a client of the provider's own format that create and poll a task. */
  readonly create: { readonly path: string; readonly body: Json };
  readonly idIn: (answer: Json) => string;
  readonly poll: (id: string) => { readonly path: string; readonly body?: Json };
  /** Reads a client's response: the provider's state, the reason of a failure and the URL of the video. */
  readonly read: (answer: Json) => {
    readonly state: string;
    readonly reason?: string;
    readonly url?: string;
  };
  /** The provider's state names by stage. */
  readonly words: Readonly<Record<Stage, string>>;
  /** Response of the provider to a new task. */
  readonly made: (id: string) => Json;
  readonly taskJson: (id: string, stage: Stage, url: string) => Json;
  /** Returns the task id in a request that polls; undefined for other requests. */
  readonly taskIdIn: (request: SeenRequest) => string | undefined;
  readonly authorized: (request: SeenRequest) => boolean;
}

/** Reason of the failure of scripted tasks. */
export const reason = 'The moon was not in the picture.';

function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>((inner, step) => (inner as Json | undefined)?.[step], value);
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function parsed({ body }: SeenRequest): Json {
  return body.length === 0 ? {} : (JSON.parse(body.toString()) as Json);
}

const bearer =
  (key: string) =>
  ({ headers }: SeenRequest): boolean =>
    headers.authorization === `Bearer ${key}`;

/** The providers, each with the words of its own format. */
export const vendors: readonly Vendor[] = [
  {
    kind: 'sora',
    key: 'sora-key',
    base: '/v1',
    model: 'sora-2',
    create: { path: '/v1/videos', body: { model: 'sora-2', prompt: 'the moon', seconds: '8' } },
    idIn: ({ id }) => text(id),
    poll: (id) => ({ path: `/v1/videos/${id}` }),
    read: (answer) => ({
      state: text(answer.status),
      reason: text(at(answer, 'error', 'message')),
      url: text(at(answer, 'metadata', 'url')),
    }),
    words: { queued: 'queued', in_progress: 'in_progress', completed: 'completed', failed: 'failed' },
    made: (id) => ({ id, object: 'video', status: 'queued', progress: 0, seconds: '8' }),
    taskJson: (id, stage) => ({
      id,
      object: 'video',
      status: stage,
      progress: stage === 'in_progress' ? 50 : 0,
      error: stage === 'failed' ? { code: 'moon', message: reason } : null,
    }),
    taskIdIn: ({ method, url }) => (method === 'GET' ? /^\/v1\/videos\/([^/?]+)$/.exec(url)?.[1] : undefined),
    authorized: bearer('sora-key'),
  },
  {
    kind: 'kling',
    key: 'access-1|secret-1',
    base: '',
    model: 'kling-v1',
    create: {
      path: '/kling/v1/videos/text2video',
      body: { model_name: 'kling-v1', prompt: 'the moon', duration: '10' },
    },
    idIn: (answer) => text(at(answer, 'data', 'task_id')),
    poll: (id) => ({ path: `/kling/v1/videos/text2video/${id}` }),
    read: (answer) => ({
      state: text(at(answer, 'data', 'task_status')),
      reason: text(at(answer, 'data', 'task_status_msg')),
      url: text(at(answer, 'data', 'task_result', 'videos', 0, 'url')),
    }),
    words: { queued: 'submitted', in_progress: 'processing', completed: 'succeed', failed: 'failed' },
    made: (id) => ({
      code: 0,
      message: 'SUCCEED',
      request_id: 'r',
      data: { task_id: id, task_status: 'submitted' },
    }),
    taskJson: (id, stage, url) => ({
      code: 0,
      message: 'SUCCEED',
      data: {
        task_id: id,
        task_status: {
          queued: 'submitted',
          in_progress: 'processing',
          completed: 'succeed',
          failed: 'failed',
        }[stage],
        ...(stage === 'failed' ? { task_status_msg: reason } : {}),
        ...(stage === 'completed' ? { task_result: { videos: [{ id: 'v', url, duration: '10' }] } } : {}),
      },
    }),
    taskIdIn: ({ method, url }) =>
      method === 'GET' ? /^\/v1\/videos\/text2video\/([^/?]+)$/.exec(url)?.[1] : undefined,
    authorized: ({ headers }) => /^Bearer ey[\w-]+\.ey[\w-]+\.[\w-]+$/.test(headers.authorization ?? ''),
  },
  {
    kind: 'jimeng',
    key: 'access-2|secret-2',
    base: '',
    model: 'jimeng_v30',
    create: {
      path: '/jimeng/?Action=CVSync2AsyncSubmitTask&Version=2022-08-31',
      body: { req_key: 'jimeng_v30', prompt: 'the moon', frames: 121 },
    },
    idIn: (answer) => text(at(answer, 'data', 'task_id')),
    poll: (id) => ({
      path: '/jimeng/?Action=CVSync2AsyncGetResult&Version=2022-08-31',
      body: { req_key: 'jimeng_v30', task_id: id },
    }),
    read: (answer) => ({
      state: answer.code === 10_000 ? text(at(answer, 'data', 'status')) : 'failed',
      reason: text(answer.message),
      url: text(at(answer, 'data', 'video_url')),
    }),
    words: { queued: 'in_queue', in_progress: 'generating', completed: 'done', failed: 'failed' },
    made: (id) => ({ code: 10_000, message: 'Success', status: 10_000, data: { task_id: id } }),
    taskJson: (_id, stage, url) =>
      stage === 'failed'
        ? { code: 50_511, message: reason, status: 50_511, data: null }
        : {
            code: 10_000,
            message: 'Success',
            status: 10_000,
            data: {
              status: { queued: 'in_queue', in_progress: 'generating', completed: 'done' }[stage],
              video_url: stage === 'completed' ? url : '',
            },
          },
    taskIdIn: (request) =>
      request.url.includes('Action=CVSync2AsyncGetResult') && parsed(request).req_key === 'jimeng_t2v_v30'
        ? text(parsed(request).task_id)
        : undefined,
    authorized: ({ headers }) =>
      /^HMAC-SHA256 Credential=access-2\/\d{8}\/cn-north-1\/cv\/request, SignedHeaders=[\w;-]+, Signature=[0-9a-f]{64}$/.test(
        headers.authorization ?? '',
      ),
  },
  {
    kind: 'doubao',
    key: 'ark-key',
    base: '/api/v3',
    model: 'doubao-seedance-1-0-pro',
    create: {
      path: '/api/v3/contents/generations/tasks',
      body: {
        model: 'doubao-seedance-1-0-pro',
        content: [{ type: 'text', text: 'the moon --dur 5' }],
      },
    },
    idIn: ({ id }) => text(id),
    poll: (id) => ({ path: `/api/v3/contents/generations/tasks/${id}` }),
    read: (answer) => ({
      state: text(answer.status),
      reason: text(at(answer, 'error', 'message')),
      url: text(at(answer, 'content', 'video_url')),
    }),
    words: { queued: 'queued', in_progress: 'running', completed: 'succeeded', failed: 'failed' },
    made: (id) => ({ id }),
    taskJson: (id, stage, url) => ({
      id,
      model: 'doubao-seedance-1-0-pro',
      status: { queued: 'queued', in_progress: 'running', completed: 'succeeded', failed: 'failed' }[stage],
      error: stage === 'failed' ? { code: 'Moon', message: reason } : null,
      ...(stage === 'completed' ? { content: { video_url: url } } : {}),
    }),
    taskIdIn: ({ method, url }) =>
      method === 'GET' ? /^\/api\/v3\/contents\/generations\/tasks\/([^/?]+)$/.exec(url)?.[1] : undefined,
    authorized: bearer('ark-key'),
  },
  {
    kind: 'vidu',
    key: 'vidu-key',
    base: '/ent/v2',
    model: 'viduq2',
    create: { path: '/ent/v2/text2video', body: { model: 'viduq2', prompt: 'the moon', duration: 5 } },
    idIn: ({ task_id: id }) => text(id),
    poll: (id) => ({ path: `/ent/v2/tasks/${id}/creations` }),
    read: (answer) => ({
      state: text(answer.state),
      reason: text(answer.err_msg),
      url: text(at(answer, 'creations', 0, 'url')),
    }),
    words: { queued: 'queueing', in_progress: 'processing', completed: 'success', failed: 'failed' },
    made: (id) => ({ task_id: id, state: 'created', model: 'viduq2', credits: 4 }),
    taskJson: (id, stage, url) => ({
      id,
      state: { queued: 'queueing', in_progress: 'processing', completed: 'success', failed: 'failed' }[stage],
      err_code: stage === 'failed' ? 'Moon' : '',
      ...(stage === 'failed' ? { err_msg: reason } : {}),
      creations: stage === 'completed' ? [{ id: 'c', url, cover_url: `${url}.png` }] : [],
    }),
    taskIdIn: ({ method, url }) =>
      method === 'GET' ? /^\/ent\/v2\/tasks\/([^/?]+)\/creations$/.exec(url)?.[1] : undefined,
    authorized: ({ headers }) => headers.authorization === 'Token vidu-key',
  },
  {
    kind: 'gemini',
    key: 'veo-key',
    base: '/v1beta',
    model: 'veo-3.0',
    create: {
      path: '/v1beta/models/veo-3.0:predictLongRunning',
      body: { instances: [{ prompt: 'the moon' }], parameters: { durationSeconds: 8 } },
    },
    idIn: ({ name }) => text(name).replace('operations/', ''),
    poll: (id) => ({ path: `/v1beta/operations/${id}` }),
    read: (answer) => ({
      state: answer.done === true ? (answer.error === undefined ? 'completed' : 'failed') : 'running',
      reason: text(at(answer, 'error', 'message')),
      url: text(at(answer, 'response', 'generateVideoResponse', 'generatedSamples', 0, 'video', 'uri')),
    }),
    words: { queued: 'running', in_progress: 'running', completed: 'completed', failed: 'failed' },
    made: (id) => ({ name: `models/veo-3.0/operations/${id}` }),
    taskJson: (id, stage, url) => ({
      name: `models/veo-3.0/operations/${id}`,
      ...(stage === 'completed'
        ? { done: true, response: { generateVideoResponse: { generatedSamples: [{ video: { uri: url } }] } } }
        : {}),
      ...(stage === 'failed' ? { done: true, error: { code: 13, message: reason } } : {}),
    }),
    taskIdIn: ({ method, url }) =>
      method === 'GET' ? /^\/v1beta\/models\/veo-3\.0\/operations\/([^/?]+)$/.exec(url)?.[1] : undefined,
    authorized: ({ headers }) => headers['x-goog-api-key'] === 'veo-key',
  },
];

/** Scripted provider with the APIs of all vendors. Tests set the stage of each task. */
export class VideoUpstream {
  readonly stages = new Map<string, Stage>();
  /** Requests that create a task, by vendor. */
  readonly made: { readonly vendor: string; readonly id: string; readonly request: SeenRequest }[] = [];
  readonly questions: string[] = [];
  readonly strangers: string[] = [];
  /** URL of finished videos. */
  address = '';

  readonly script = (request: SeenRequest, response: ServerResponse): void => {
    const vendor = vendors.find((one) => request.url.startsWith(`/${one.kind}/`));
    const inner = { ...request, url: request.url.slice((vendor?.kind.length ?? 0) + 1) };
    if (vendor === undefined || !vendor.authorized(inner)) {
      this.strangers.push(`${request.method} ${request.url} ${request.headers.authorization ?? ''}`);
      response.writeHead(401, { 'content-type': 'application/json' }).end('{"message":"who are you?"}');
      return;
    }
    const send = (body: Json): void =>
      void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    const taskId = vendor.taskIdIn(inner);
    if (taskId !== undefined) {
      this.questions.push(taskId);
      send(vendor.taskJson(taskId, this.stages.get(taskId) ?? 'queued', `${this.address}/${taskId}.mp4`));
      return;
    }
    if (request.method !== 'POST') {
      response.writeHead(404, { 'content-type': 'application/json' }).end('{"message":"not here"}');
      return;
    }
    const id = `${vendor.kind}-${this.made.length}`;
    this.made.push({ vendor: vendor.kind, id, request: inner });
    this.stages.set(id, 'queued');
    send(vendor.made(id));
  };

  /** Id of the last created task. */
  get last(): string {
    return this.made.at(-1)?.id ?? '';
  }
}

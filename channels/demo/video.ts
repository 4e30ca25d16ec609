/** Video operations of the demo channel, which stores nothing: the id of a task holds all its data. */
import {
  GatewayError,
  parseObject,
  type Upstream,
  type UpstreamRequest,
  type Call,
  type ChannelParts,
} from 'sluice';
import type { Format } from 'sluice/internal';
import { pause, refusal } from './answers.ts';
import { body, reply } from './reply.ts';

/** Video operations and their formats. */
export const videoOperations = {
  'create-video': ['videos'],
  'get-video': ['videos'],
  'delete-video': ['videos'],
} satisfies ChannelParts['speaks'];

/** Data in the id of a task. Times are in milliseconds. */
interface DemoTask {
  readonly begun: number;
  readonly ready: number;
  readonly fails: boolean;
  readonly seconds: number;
  readonly size: string;
}

/** Time in milliseconds until a video is finished whose prompt has no `!ready=MS`. */
const usualTime = 2_000;

/** Answers requests about videos. `!ready=MS` sets when a video is finished, and `!fail` makes it fail. */
export async function answerVideo(
  call: Call,
  format: Format,
  wire: UpstreamRequest,
  { delay }: { readonly delay: number },
): Promise<Upstream> {
  await pause(call, delay);
  const [, id, part] = /^\/videos\/([^/]+)(?:\/(content|remix))?$/.exec(wire.path) ?? [];
  if (wire.operation === 'create-video') {
    const before = id === undefined ? undefined : taskOf(decodeURIComponent(id));
    return json(call, videoBody(newTask(wire, before), wire.model));
  }
  const task = id === undefined ? undefined : taskOf(decodeURIComponent(id));
  if (task === undefined) {
    const error = new GatewayError('not_found', 'The demo knows no such video.');
    return refusal(call, format, error);
  }
  if (wire.operation === 'delete-video') return json(call, { id: idOf(task), deleted: true });
  return part === 'content' ? content(call, format, task, wire) : json(call, videoBody(task, wire.model));
}

function newTask({ body: sent }: UpstreamRequest, before: DemoTask | undefined): DemoTask {
  const fields =
    typeof sent === 'string' || Buffer.isBuffer(sent)
      ? (parseObject(sent.toString()) ?? {})
      : Object.fromEntries(sent.flatMap((field) => ('value' in field ? [[field.name, field.value]] : [])));
  const prompt = typeof fields.prompt === 'string' ? fields.prompt : '';
  const [, ready] = /!ready=(\d{1,9})/.exec(prompt) ?? [];
  return {
    begun: Date.now(),
    ready: ready === undefined ? usualTime : Number(ready),
    fails: /!fail\b/.test(prompt),
    seconds: Number(fields.seconds ?? before?.seconds ?? 4) || 4,
    size: typeof fields.size === 'string' ? fields.size : (before?.size ?? '720x1280'),
  };
}

function idOf({ begun, ready, fails, seconds, size }: DemoTask): string {
  return ['demo', begun.toString(36), ready.toString(36), fails ? 'f' : 's', seconds, size].join('-');
}

function taskOf(id: string): DemoTask | undefined {
  const [, begun, ready, end, seconds, size] =
    /^demo-([0-9a-z]{1,10})-([0-9a-z]{1,8})-([fs])-([\d.]{1,8})-(\d+x\d+)$/.exec(id) ?? [];
  if (begun === undefined || ready === undefined || size === undefined) return undefined;
  return {
    begun: Number.parseInt(begun, 36),
    ready: Number.parseInt(ready, 36),
    fails: end === 'f',
    seconds: Number(seconds),
    size,
  };
}

/** The share of the time in which a task waits before it is begun. */
const waiting = 0.2;

function videoBody(task: DemoTask, model: string): object {
  const done = task.ready === 0 ? 1 : Math.min(1, (Date.now() - task.begun) / task.ready);
  const over = done >= 1;
  const status = over ? (task.fails ? 'failed' : 'completed') : done < waiting ? 'queued' : 'in_progress';
  return {
    id: idOf(task),
    object: 'video',
    model,
    status,
    progress: Math.floor(done * 100),
    created_at: Math.floor(task.begun / 1000),
    completed_at: status === 'completed' ? Math.floor((task.begun + task.ready) / 1000) : null,
    expires_at: null,
    seconds: String(task.seconds),
    size: task.size,
    error: over && task.fails ? { code: 'demo_failed', message: 'The demo failed, as you asked.' } : null,
  };
}

function content(call: Call, format: Format, task: DemoTask, { headers }: UpstreamRequest): Upstream {
  if (task.fails || Date.now() < task.begun + task.ready) {
    return refusal(
      call,
      format,
      new GatewayError('video_not_ready', 'The demo has not finished this video.'),
    );
  }
  const whole = film();
  const common = { 'content-type': 'video/mp4', 'accept-ranges': 'bytes', etag: '"demo"' };
  const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(headers.range ?? '') ?? [];
  if (first === undefined) {
    return reply(call, 200, { ...common, 'content-length': String(whole.length) }, [{ bytes: whole }]);
  }
  const from = Number(first);
  const to = Math.min(whole.length - 1, last === undefined || last === '' ? whole.length - 1 : Number(last));
  if (from > to) return reply(call, 416, { ...common, 'content-range': `bytes */${whole.length}` }, body(''));
  const piece = whole.subarray(from, to + 1);
  return reply(
    call,
    206,
    {
      ...common,
      'content-length': String(piece.length),
      'content-range': `bytes ${from}-${to}/${whole.length}`,
    },
    [{ bytes: piece }],
  );
}

/** Builds an MP4 file without any frames. */
function film(): Buffer {
  const box = (type: string, inside: Buffer): Buffer => {
    const head = Buffer.alloc(8);
    head.writeUInt32BE(inside.length + 8);
    head.write(type, 4, 'latin1');
    return Buffer.concat([head, inside]);
  };
  return Buffer.concat([
    box('ftyp', Buffer.from('isom\x00\x00\x02\x00isommp41', 'latin1')),
    box('mdat', Buffer.alloc(64 * 1024, 'demo')),
  ]);
}

function json(call: Call, value: object): Upstream {
  return reply(call, 200, { 'content-type': 'application/json' }, body(JSON.stringify(value)));
}

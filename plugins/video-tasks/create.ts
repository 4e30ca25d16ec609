/** Creates video tasks: sends the request to the provider, then stores the task together with its charge. */
import { from, lastValueFrom, toArray, type Observable } from 'rxjs';
import { GatewayError, type GatewayEvent } from 'sluice';
import type { VideoReport, VideoRequest } from 'sluice/channel-kit';
import {
  accountOf,
  advance,
  endUserSeries,
  isFinished,
  reportOf,
  reservedAt,
  type Call,
  type InternalTools,
  type Next,
} from 'sluice/internal';
import type { CallEdits, Detached, Settlement, Task, TaskStore } from './core-types.ts';
import { newTaskId } from './ids.ts';
import { ownerOf } from './owner.ts';
import type { Poller } from './poller.ts';
import { withBytes } from './references.ts';

/** Services and options for creating tasks. */
export interface Creating {
  readonly store: TaskStore;
  readonly poller: Poller;
  readonly tools: Pick<InternalTools, 'bookkeeper' | 'detached' | 'log'>;
  /** Milliseconds until an unfinished task fails, and until a task is removed. */
  readonly deadline: number;
  readonly retention: number;
  /** Maximum number of bytes of an image that is sent as a file. */
  readonly reference: number;
  /** Returns a task with the URLs that the client may see. */
  readonly shown: (call: Call, task: Task) => Task;
}

/**
 * Creates a task: sends the request to the provider, stores the task together with its charge, and only then responds. Continues when the client
 * leaves, because the provider may have begun and charges for it.
 */
export async function createTask(
  call: Call,
  next: Next,
  creating: Creating,
): Promise<Observable<GatewayEvent>> {
  const { store, poller, tools } = creating;
  const { edits, request, origin } = await prepared(call, creating);
  const own = tools.detached.detach(call.with(edits));
  const account = accountOf(own.call);
  account.settlesElsewhere = true;
  try {
    const { report, events } = await submit(own, next);
    const settlement = named(account.take(), origin);
    const begun = taskOf({ call, own, request, origin, report, settlement }, creating);
    const seen = advance(begun, report, Date.now());
    try {
      await store.create(isFinished(seen) ? begun : seen, poller.nextPollAt(0, Date.now()), settlement);
    } catch (error) {
      await undo(begun, settlement, error, creating);
      throw new GatewayError('server_is_overloaded', 'The gateway cannot keep this task now.', {
        retryAfter: 5,
        cause: error,
      });
    }
    // A task that has ended at once was charged and is refunded where it failed, so that the records show both.
    if (isFinished(seen)) await poller.finish(seen);
    return from<GatewayEvent[]>([
      ...events.filter(({ type }) => type !== 'result'),
      { type: 'result', value: reportOf(creating.shown(call, seen)) },
    ]);
  } finally {
    own.end();
  }
}

interface Prepared {
  readonly edits: CallEdits;
  readonly request: VideoRequest;
  /** The task that is remixed. */
  readonly origin: Task | undefined;
}

async function prepared(call: Call, { store, reference }: Creating): Promise<Prepared> {
  const video = call.request;
  if (video.operation !== 'create-video') throw new Error('This call does not create a video.');
  const origin = video.remixOf === undefined ? undefined : await originOf(call, video.remixOf, store);
  const bytes = await withBytes(video, reference);
  const request: VideoRequest =
    origin === undefined
      ? bytes
      : {
          ...bytes,
          model: origin.model,
          remixOf: origin.upstreamId,
          // Charged by the length and the size of the original.
          ...(origin.seconds === undefined ? {} : { seconds: origin.seconds }),
          ...(origin.size === undefined ? {} : { size: origin.size }),
        };
  const edits: CallEdits = {
    decoded: true,
    codec: { ...call.codec, decodeRequest: () => request },
    ...(origin === undefined
      ? {}
      : {
          model: origin.model,
          affinity: { channel: origin.channel, key: origin.key, only: true },
        }),
  };
  return { edits, request, origin };
}

async function originOf(call: Call, id: string, store: TaskStore): Promise<Task> {
  const origin = await store.find(ownerOf(call), id);
  if (origin === undefined)
    throw new GatewayError('not_found', `Video with id '${id.slice(0, 200)}' not found.`);
  if (origin.state !== 'completed') {
    throw new GatewayError(
      'invalid_request',
      'Only a completed video can be remixed. Wait until this one is completed.',
      { param: 'id' },
    );
  }
  return origin;
}

interface Made {
  readonly report: VideoReport;
  readonly events: readonly GatewayEvent[];
}

async function submit(own: Detached, next: Next): Promise<Made> {
  const reply = await own.send(next);
  const events = await lastValueFrom(reply.pipe(toArray()));
  const result = events.find((event) => event.type === 'result');
  if (result === undefined)
    throw new GatewayError('upstream_error', 'The upstream returned no task id.', { origin: 'upstream' });
  return { events, report: result.value as VideoReport };
}

/** Sets the model of a remix in its record, because the request does not name one. */
function named(settlement: Settlement | undefined, origin: Task | undefined): Settlement | undefined {
  if (settlement === undefined || origin === undefined) return settlement;
  return { ...settlement, record: { ...settlement.record, model: origin.model } };
}

interface TaskInput {
  readonly call: Call;
  readonly own: Detached;
  readonly request: VideoRequest;
  readonly origin: Task | undefined;
  readonly report: VideoReport;
  readonly settlement: Settlement | undefined;
}

function taskOf(input: TaskInput, { deadline, retention }: Creating): Task {
  const { call, own, request, origin, report, settlement } = input;
  const { target } = accountOf(own.call).attempts;
  if (target === undefined) throw new Error('A task was made nowhere.');
  const now = Date.now();
  const format = call.codec.format;
  const { seconds, size } = request;
  const formats = target.channel.speaks['get-video'] ?? [];
  const upstreamFormat = formats.includes(format) ? format : (formats[0] ?? format);
  const endUsers = endUserSeries(settlement?.series);
  return {
    id: newTaskId(format),
    owner: ownerOf(call),
    format,
    createdAt: now,
    updatedAt: now,
    expiresAt: now + retention,
    deadline: now + deadline,
    state: 'queued',
    progress: 0,
    model: origin?.model ?? call.askedModel,
    upstreamModel: target.model,
    channel: target.channel.id,
    key: target.key.id,
    upstreamFormat,
    upstreamId: report.id,
    images: request.images.length,
    prompt: request.prompt,
    ...(seconds === undefined ? {} : { seconds }),
    ...(size === undefined ? {} : { size }),
    ...(origin === undefined ? {} : { remixOf: origin.id }),
    charged: settlement?.charged ?? { microDollars: 0, tokens: 0 },
    chargedAt: reservedAt(settlement?.reservation ?? '') ?? now,
    chargeId: settlement?.record.id ?? call.id,
    ...(endUsers.length === 0 ? {} : { endUsers }),
    polledAt: now,
    asks: 0,
    refusals: 0,
  };
}

/** Cancels a task at the provider that could not be stored, and records it without a charge. */
async function undo(
  task: Task,
  settlement: Settlement | undefined,
  error: unknown,
  { poller, tools }: Creating,
): Promise<void> {
  tools.log.error({ error, channel: task.channel }, 'storing a video task failed, task given up');
  await poller.cancel(task).catch(() => {});
  if (settlement === undefined) return;
  const { microDollars: _free, ...record } = settlement.record;
  tools.bookkeeper.enqueue({
    ...settlement,
    charged: { microDollars: 0, tokens: 0 },
    record: { ...record, status: 503, ended: 'error', code: 'server_is_overloaded' },
  });
}

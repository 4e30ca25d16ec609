/** Makes the codecs of a format for videos: requests for videos, questions about their state, and the states in the words of the format. */
import { GatewayError } from '../../sdk/errors.ts';
import type { JsonObject } from '../../model/json.ts';
import type { VideoReport, VideoRequest, VideoState, VideoTaskRequest } from '../../model/video.ts';
import type {
  Codec,
  Codecs,
  EncodedRequest,
  EncodeTarget,
  ReplyContext,
  RouteParams,
} from '../../sdk/format.ts';
import { absentMember } from './define-codec.ts';
import { reportForeign } from './foreign.ts';
import { unusableResponse } from './upstream-error/index.ts';
import { videoUnits } from './video-units.ts';

/**
 * Members of the codecs for videos in one wire format. A format that no client uses needs none of `words`, `model`, `decode`,
 * `writeSubmitted` and `writeStatus`.
 *
 * @example
 * const spec: VideoCodecSpec = { format: 'acme', encode, readReport, ask: ({ id }) => ({ path: `/tasks/${id}`, method: 'GET', body: {} }) };
 */
export interface VideoCodecSpec {
  readonly format: string;
  /** Names of the format for neutral names: `settings.seconds` → `duration`. */
  readonly words?: Readonly<Record<string, string>>;
  /** Returns the model of a client's request. Throws a 400 error when it is missing. */
  model?(body: JsonObject, params: RouteParams): string;
  /** Decodes a client's request. Throws a 400 error that names the field. */
  decode?(body: JsonObject, params: RouteParams): VideoRequest;
  /** Encodes a request for the provider. Fields that only another format has are already reported as dropped. */
  encode(request: VideoRequest, target: EncodeTarget): EncodedRequest;
  /** True when the provider can make a new version of a video (`remixOf`). Default false. */
  readonly remixes?: boolean;
  /** Returns the error for a client's body that only a channel of the same format can serve; undefined for all others. */
  readonly onlyNative?: (body: JsonObject) => GatewayError | undefined;
  /** Reads the provider's responses about a task: when it is created, and its status later. Throws GatewayError when the provider refuses. */
  readReport(body: JsonObject): VideoReport;
  /** Encodes the response to a client that has created a task. */
  writeSubmitted?(report: VideoReport, context: ReplyContext): JsonObject;
  /** Encodes the response to a request for the status of a task. */
  writeStatus?(report: VideoReport, context: ReplyContext): JsonObject;
  /** Encodes the request for the status of a task. */
  ask(request: VideoTaskRequest): EncodedRequest;
  /** Encodes the request that cancels a task. Absent where the provider cannot cancel. */
  readonly cancel?: (request: VideoTaskRequest) => EncodedRequest;
  /** Encodes the request for the file of a finished video, for providers that require their key. */
  readonly contentRequest?: Codec<VideoTaskRequest>['contentRequest'];
}

/**
 * Codecs of `create-video`, `get-video` and, if the provider supports cancellation, `delete-video`.
 *
 * @example
 * const codecs: VideoCodecs = defineVideoCodecs(spec);
 */
export type VideoCodecs = Required<Pick<Codecs, 'create-video' | 'get-video'>> & Pick<Codecs, 'delete-video'>;

/**
 * Makes the codecs for videos and their tasks. A client that asks for a video gets a task of the gateway, and the gateway polls the provider
 * for its state.
 *
 * @example
 * const codecs = defineVideoCodecs({
 *   format: 'acme',
 *   encode: ({ prompt, seconds = 5 }, { model }) => ({ path: '/tasks', body: { model, prompt, seconds } }),
 *   readReport: ({ id, status, url }) => ({ id: String(id), state: readState(status), ...(typeof url === 'string' ? { url } : {}) }),
 *   ask: ({ id }) => ({ path: `/tasks/${id}`, method: 'GET', body: {} }),
 * });
 */
export function defineVideoCodecs(spec: VideoCodecSpec): VideoCodecs {
  const words = { ...clientless(spec.format), ...spec };
  const { format } = words;
  const common = {
    format,
    upstreamFraming: 'none',
    marks: { usage: [], terminal: [] },
    toleratesComments: true,
    tellsErrors: true,
    clientFraming: () => 'none' as const,
    patch: (body: JsonObject) => body,
    usageTap: () => ({ read: () => undefined }),
    settingPath: (name: string) => name,
    words: words.words,
    decodeWhole: (body: JsonObject) => [{ type: 'result', value: words.readReport(body) }] as const,
  } as const;
  const never = (): never => {
    throw new Error(`Nobody sends the gateway a question for a task in ${format} that it would pass on.`);
  };
  const create: Codec<VideoRequest> = {
    ...common,
    operation: 'create-video',
    // A provider's own ids are of no use to a client: who keeps tasks has every request decoded.
    passThrough() {
      throw new GatewayError('endpoint_not_supported', 'This gateway does not store videos.');
    },
    peek: (body, params) => ({ model: words.model(body, params), stream: false }),
    validate: (body, params) => words.decode(body, params),
    decodeRequest: (body, params) => words.decode(body, params),
    encodeRequest(request, target) {
      if (request.remixOf !== undefined && words.remixes !== true) {
        throw new GatewayError(
          'unsupported_parameter',
          'The provider of this video does not support remixes.',
        );
      }
      reportForeign(request.extra, format, '', (path) => target.drop(path));
      return words.encode(request, target);
    },
    ...(words.onlyNative === undefined ? {} : { onlyNative: words.onlyNative }),
    decodeWhole(body) {
      const report = words.readReport(body);
      if (report.id === '') throw noTask();
      return [{ type: 'result', value: report }];
    },
    estimate: (request) => ({ input: 0, output: 0, units: videoUnits(request) }),
    encodeWhole: (context) => whole((report) => words.writeSubmitted(report, context)),
  };
  const task = {
    ...common,
    passThrough: never,
    peek: never,
    validate: never,
    decodeRequest: never,
    encodeWhole: (context: ReplyContext) => whole((report) => words.writeStatus(report, context)),
  };
  const { ask, cancel, contentRequest } = words;
  return {
    'create-video': create,
    'get-video': {
      ...task,
      operation: 'get-video',
      encodeRequest: (request) => ask(request),
      ...(contentRequest === undefined ? {} : { contentRequest }),
    },
    ...(cancel === undefined
      ? {}
      : {
          'delete-video': {
            ...task,
            operation: 'delete-video',
            encodeRequest: (request) => cancel(request),
            // Ignores the body: without an error status, the task was cancelled.
            decodeWhole: () => [{ type: 'result', value: { id: '', state: 'cancelled' } }] as const,
          },
        }),
  };
}

/** Stands for the members of a spec that only formats for clients have. */
function clientless(format: string) {
  return {
    words: {},
    model: absentMember(format, 'model'),
    decode: absentMember(format, 'decode'),
    writeSubmitted: absentMember(format, 'writeSubmitted'),
    writeStatus: absentMember(format, 'writeStatus'),
  } satisfies Partial<VideoCodecSpec>;
}

function whole(write: (report: VideoReport) => JsonObject) {
  let body: JsonObject | undefined;
  return {
    event(event: { readonly type: string; readonly value?: unknown }) {
      if (event.type === 'result') body = write(event.value as VideoReport);
    },
    end(): JsonObject {
      if (body === undefined) throw unusableResponse('sent no task');
      return body;
    },
  };
}

/**
 * Returns a function that maps the provider's words for states, in lower case, to states of a VideoReport. It returns undefined for words
 * that the table does not have.
 *
 * @example
 * const readState = videoStateReader({ pending: 'queued', running: 'in_progress', done: 'completed', failed: 'failed' });
 */
export function videoStateReader(
  table: Readonly<Record<string, VideoState>>,
): (word: unknown) => VideoState | undefined {
  const known = new Map(Object.entries(table));
  return (word) => (typeof word === 'string' ? known.get(word.toLowerCase()) : undefined);
}

/**
 * Returns both directions of a table: per state the words on the wire, of which the first is written. A format without a word for cancelled
 * tasks writes that they failed.
 */
export function videoStates(table: Readonly<Record<VideoState, readonly string[]>>) {
  const states = Object.keys(table) as VideoState[];
  const read = videoStateReader(
    Object.fromEntries(states.flatMap((state) => table[state].map((word) => [word, state] as const))),
  );
  return { read, write: (state: VideoState): string => table[state][0] ?? table.failed[0] ?? '' };
}

/** Returns the name that a reply gives the model. */
export function modelOf({ task }: VideoReport, { model }: ReplyContext): string {
  return task?.model ?? model;
}

/**
 * Returns the members with which a video begins for clients of OpenAI's videos and of the gateways that follow them. These clients know no cancelled
 * videos. `write` gives the words of states.
 */
export function videoObject(
  report: VideoReport,
  context: ReplyContext,
  write: (state: VideoState) => string,
): JsonObject {
  const { id, state = 'queued', progress = 0 } = report;
  return {
    id,
    task_id: id,
    object: 'video',
    model: modelOf(report, context),
    status: write(state === 'cancelled' ? 'failed' : state),
    progress,
    created_at: createdOf(report, context),
  };
}

/** Returns the Unix seconds at which the task was made. */
export function createdOf({ task }: VideoReport, { created }: ReplyContext): number {
  return task === undefined ? created : Math.floor(task.createdAt / 1000);
}

/** Returns an error for a provider that created a task but returned no id. */
export function noTask(): GatewayError {
  return unusableResponse('named no task');
}

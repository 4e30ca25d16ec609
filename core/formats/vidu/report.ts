import { isObject, type JsonObject } from '../../model/json.ts';
import type { VideoReport } from '../../model/video.ts';
import type { ReplyContext } from '../../sdk/format.ts';
import { redact } from '../_shared/redact.ts';
import { createdOf, modelOf } from '../_shared/video-codec.ts';
import { readState, stateWords } from './wire.ts';

/** What the provider says of a task. Its answers about a task do not all repeat its id. */
export function readReport(body: JsonObject): VideoReport {
  const { task_id: task, id, state: word, creations, err_code: code, err_msg: message } = body;
  const state = readState(word);
  const list: readonly unknown[] = Array.isArray(creations) ? creations : [];
  const first = list.find(isObject);
  const name = typeof task === 'string' ? task : id;
  return {
    id: typeof name === 'string' ? name : '',
    state,
    ...(typeof first?.url === 'string' ? { url: first.url } : {}),
    ...(typeof first?.cover_url === 'string' ? { thumbnailUrl: first.cover_url } : {}),
    ...(state === 'failed'
      ? {
          error: {
            code: typeof code === 'string' && code !== '' ? code : 'generation_failed',
            message:
              typeof message === 'string' && message !== ''
                ? redact(message)
                : typeof code === 'string' && code !== ''
                  ? `The provider failed with ${redact(code)}.`
                  : 'The video could not be made.',
          },
        }
      : {}),
  };
}

/** The answer to who has made a task: with what was asked for. */
export function writeSubmitted(report: VideoReport, context: ReplyContext): JsonObject {
  const { body } = context;
  const echo = (field: string): JsonObject => (body[field] === undefined ? {} : { [field]: body[field] });
  return {
    task_id: report.id,
    state: report.state === 'queued' ? 'created' : stateWords[report.state ?? 'queued'],
    model: modelOf(report, context),
    prompt: report.task?.prompt ?? '',
    ...echo('duration'),
    ...echo('seed'),
    ...echo('aspect_ratio'),
    ...echo('resolution'),
    ...echo('movement_amplitude'),
    ...echo('payload'),
    created_at: new Date(createdOf(report, context) * 1000).toISOString(),
  };
}

/** The answer to who asks for a task. */
export function writeStatus(report: VideoReport): JsonObject {
  const { id, state = 'queued', error, url, thumbnailUrl } = report;
  return {
    id,
    task_id: id,
    state: stateWords[state],
    err_code: error === undefined || state === 'cancelled' ? '' : error.code,
    ...(error === undefined || state === 'cancelled' ? {} : { err_msg: error.message }),
    creations:
      url === undefined
        ? []
        : [{ id, url, ...(thumbnailUrl === undefined ? {} : { cover_url: thumbnailUrl }) }],
  };
}

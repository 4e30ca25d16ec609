import { randomUUID } from 'node:crypto';
import type { GatewayEvent } from '../../../model/event.ts';
import type { JsonObject, JsonValue } from '../../../model/json.ts';
import type { Usage } from '../../../model/usage.ts';
import type { ReplyContext, WireFrame } from '../../../sdk/format.ts';
import { encodeUsage } from '../usage.ts';
import { name, own, stopOfReason } from '../wire.ts';

/** What the last frames of a reply say, gathered while it lasts. */
export interface Ending {
  usage: Usage | undefined;
  finish: Extract<GatewayEvent, { type: 'finish' }> | undefined;
  /** A tool was called. */
  calls: boolean;
}

/** An id in the format's style, for a call whose provider gave none. */
export function freshCallId(): string {
  return `tooluse_${randomUUID().replaceAll('-', '')}`;
}

/** `messageStop`, and `metadata` with the usage and the time that it took. */
export function lastFrames(ending: Ending, context: ReplyContext): WireFrame[] {
  const { finish, usage } = ending;
  const fields = sequenceField(finish?.stopSequence, context.body);
  return [
    { event: 'messageStop', json: { stopReason: stopReason(ending), ...fields, ...own(finish?.extra) } },
    {
      event: 'metadata',
      json: { ...timeTaken(context), ...(usage === undefined ? estimate(context) : encodeUsage(usage)) },
    },
  ];
}

function stopReason({ finish, calls }: Ending): string {
  if (finish?.format === name && finish.raw !== undefined) return finish.raw;
  const reason = stopOfReason[finish?.reason ?? 'stop'];
  if (reason === 'end_turn' && calls) return 'tool_use';
  return reason === 'tool_use' && !calls ? 'end_turn' : reason;
}

/** Which stop sequence was met is told to who asked for it. */
function sequenceField(
  sequence: string | undefined,
  { additionalModelResponseFieldPaths }: JsonObject,
): JsonObject {
  const asked: readonly JsonValue[] = Array.isArray(additionalModelResponseFieldPaths)
    ? additionalModelResponseFieldPaths
    : [];
  if (sequence === undefined || !asked.includes('/stop_sequence')) return {};
  return { additionalModelResponseFields: { stop_sequence: sequence } };
}

function estimate({ inputEstimate }: ReplyContext): JsonObject {
  return { usage: { inputTokens: inputEstimate, outputTokens: 0, totalTokens: inputEstimate } };
}

/** The call's own time, to the second, where no provider tells another. */
function timeTaken({ created, completed }: ReplyContext): JsonObject {
  const end = completed ?? Math.floor(Date.now() / 1000);
  return { metrics: { latencyMs: Math.max(0, end - created) * 1000 } };
}

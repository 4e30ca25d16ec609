import type { GatewayEvent } from '../../../model/event.ts';
import { isObject, type JsonObject, type JsonValue } from '../../../model/json.ts';
import type { Usage } from '../../../model/usage.ts';
import type { MutableObject } from '../../_shared/settings.ts';
import type { ReplyContext, WireFrame } from '../../../sdk/format.ts';
import { replyId } from '../ids.ts';
import { encodeUsage } from '../usage.ts';
import { name } from '../wire.ts';
import { own, unpack } from '../extra.ts';
import { stopOfReason } from '../finish.ts';

type Head = Extract<GatewayEvent, { type: 'head' }>;
type Finish = Extract<GatewayEvent, { type: 'finish' }>;

/** What the last frames of a reply say, gathered while it lasts. */
export interface Ending {
  usage: Usage | undefined;
  finish: Finish | undefined;
  /** A tool was called. */
  calls: boolean;
  /** The model declined in words. */
  refused: boolean;
  /** What `message_stop` says beside its name. */
  last: JsonObject;
}

/** `message_start`: the reply's frame, with the usage known so far or an estimate of the input. */
export function headFrame(
  head: Head | undefined,
  usage: Usage | undefined,
  context: ReplyContext,
): WireFrame {
  const { $usage } = own(head?.extra);
  const { inner, frame } = unpack(head?.extra);
  const message: JsonObject = {
    id: replyId(head?.id ?? ''),
    type: 'message',
    role: 'assistant',
    model: context.model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    ...inner,
    usage: isObject($usage) ? $usage : usage === undefined ? estimate(context) : encodeUsage(usage),
  };
  return {
    event: 'message_start',
    json: { type: 'message_start', message, ...frame },
  };
}

function estimate({ inputEstimate }: ReplyContext): JsonObject {
  return {
    input_tokens: inputEstimate,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    output_tokens: 0,
  };
}

/** `message_delta` with the true numbers, and `message_stop`. */
export function lastFrames(ending: Ending, context: ReplyContext): WireFrame[] {
  const { finish, last } = ending;
  const { $usage } = own(finish?.extra);
  const { inner, frame } = unpack(finish?.extra);
  const delta: JsonObject = {
    stop_reason: stopReason(ending),
    stop_sequence: finish?.stopSequence ?? null,
    ...inner,
  };
  const usage = totals(ending.usage, $usage, context);
  return [
    {
      event: 'message_delta',
      json: { type: 'message_delta', delta, usage, ...frame },
    },
    { event: 'message_stop', json: { ...last, type: 'message_stop' } },
  ];
}

function stopReason({ finish, calls, refused }: Ending): string {
  if (finish?.format === name && finish.raw !== undefined) return finish.raw;
  const reason = stopOfReason[finish?.reason ?? 'stop'];
  if (reason === 'end_turn' && calls) return 'tool_use';
  if (reason === 'tool_use' && !calls) return 'end_turn';
  return reason === 'end_turn' && refused ? 'refusal' : reason;
}

/** All numbers, or of this format's own those that the provider named in this frame. */
function totals(usage: Usage | undefined, named: JsonValue | undefined, context: ReplyContext): JsonObject {
  if (usage === undefined) return estimate(context);
  const wire = encodeUsage(usage);
  if (usage.format !== name || !Array.isArray(named)) return wire;
  const picked: MutableObject = {};
  for (const key of named as readonly JsonValue[]) if (typeof key === 'string') picked[key] = wire[key];
  picked.output_tokens ??= wire.output_tokens ?? 0;
  return picked;
}

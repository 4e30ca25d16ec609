/** Constants of InvokeModel, and the envelope with base64 in which its event stream carries Messages events. */
import { parseObject } from '../../json/parse.ts';
import { isObject, type JsonObject } from '../../model/json.ts';
import type { Frame, WireFrame } from '../../sdk/format.ts';

/** The name of this format. */
export const name = 'invoke';

/** Name of the event whose data holds, in base64, an event of the format inside. */
const chunkEvent = 'chunk';

/** The only `anthropic_version` of a body. */
export const bodyVersion = 'bedrock-2023-05-31';

/** Wraps a frame of the format inside in the envelope. Frames that are no JSON are dropped. */
export function enclosed(frame: WireFrame): readonly WireFrame[] {
  if ('text' in frame) return [];
  return [{ event: chunkEvent, json: { bytes: Buffer.from(JSON.stringify(frame.json)).toString('base64') } }];
}

/** Unwraps the frame of the format inside; undefined for a frame that holds none. */
export function opened({ event, data }: Frame): Frame | undefined {
  if (event !== undefined && event !== chunkEvent) return undefined;
  const payload = inside(parseObject(data));
  if (payload === undefined) return undefined;
  const type = parseObject(payload)?.type;
  return { ...(typeof type === 'string' ? { event: type } : {}), data: payload };
}

function inside(body: JsonObject | undefined): string | undefined {
  return isObject(body) && typeof body.bytes === 'string'
    ? Buffer.from(body.bytes, 'base64').toString('utf8')
    : undefined;
}

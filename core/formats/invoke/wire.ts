import { parseObject } from '../../json/parse.ts';
import { isObject, type JsonObject } from '../../model/json.ts';
import type { Frame, WireFrame } from '../../sdk/format.ts';

/** The name of this format. */
export const name = 'invoke';

/** The event whose data holds, in base64, what the model itself has said. */
const chunkEvent = 'chunk';

/** The version that a body names; there is no other. */
export const bodyVersion = 'bedrock-2023-05-31';

/** A frame of the format inside as one of the envelope. Text that is no JSON has no place in it. */
export function enclosed(frame: WireFrame): readonly WireFrame[] {
  if ('text' in frame) return [];
  return [{ event: chunkEvent, json: { bytes: Buffer.from(JSON.stringify(frame.json)).toString('base64') } }];
}

/** The frame of the format inside; undefined for one that holds none. */
export function opened({ event, data }: Frame): Frame | undefined {
  if (event !== undefined && event !== chunkEvent) return undefined;
  const said = inside(parseObject(data));
  if (said === undefined) return undefined;
  const type = parseObject(said)?.type;
  return { ...(typeof type === 'string' ? { event: type } : {}), data: said };
}

function inside(body: JsonObject | undefined): string | undefined {
  return isObject(body) && typeof body.bytes === 'string'
    ? Buffer.from(body.bytes, 'base64').toString('utf8')
    : undefined;
}

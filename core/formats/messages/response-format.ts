import { missing } from '../../sdk/errors.ts';
import type { ResponseFormat } from '../../model/chat.ts';
import { isObject, type JsonObject } from '../../model/json.ts';
import { given, optionalObject } from '../_shared/check.ts';
import type { MutableObject } from '../_shared/settings.ts';
import { keepInner } from './wire.ts';

const formatFields: ReadonlySet<string> = new Set(['type', 'schema']);
const place = 'output_config.format';
/** The beta's old place of the same object. */
const oldPlace = 'output_format';

/** The answer's form from `output_config.format` (or its old place); what only this format knows goes to `rest`. */
export function decodeFormat(body: JsonObject, rest: MutableObject): ResponseFormat | undefined {
  const current = optionalObject(body.output_config, 'output_config')?.format;
  const old = !given(current) && given(body[oldPlace]);
  if (given(current) && given(body[oldPlace])) rest[oldPlace] = body[oldPlace];
  const path = old ? oldPlace : place;
  const wire = optionalObject(old ? body[oldPlace] : current, path);
  if (wire === undefined) return undefined;
  if (wire.type !== 'json_schema') {
    rest[path] = wire;
    return undefined;
  }
  const schema = optionalObject(wire.schema, `${path}.schema`);
  if (schema === undefined) throw missing(`${path}.schema`);
  keepInner(rest, path, wire, formatFields);
  if (old) rest.$format = oldPlace;
  return { type: 'json-schema', schema };
}

/** Writes a schema where the client had it, or in the official place. */
export function writeSchema(body: MutableObject, schema: JsonObject, kept: JsonObject): void {
  const wire: JsonObject = { type: 'json_schema', schema };
  if (kept.$format === oldPlace) body[oldPlace] = wire;
  else body.output_config = { ...(isObject(body.output_config) ? body.output_config : {}), format: wire };
}

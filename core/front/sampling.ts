/** Applies the setting `sampling` to requests that combine sampling parameters which exclude each other: forwards, drops or refuses them. */
import type { Exchange } from '../call/exchange.ts';
import { editMembers } from '../json/edit-members.ts';
import type { Loss } from '../model/extra.ts';
import type { JsonObject } from '../model/json.ts';
import { callKey } from '../sdk/call-key.ts';
import type { Codec } from '../sdk/format.ts';
import type { Settings } from '../settings/index.ts';
import { understandJson, type UnderstandOptions } from './json-body.ts';

/** Members that were dropped from a request before a target was chosen, for the translation to report or refuse. */
export const requestLosses = callKey<readonly Loss[]>('request losses');

/**
 * Returns the name of the member that the setting `sampling` drops from a request, because another one excludes it; undefined where there is
 * none. Throws 400 for `refuse`.
 */
export function excludedMember(
  codec: Codec,
  body: JsonObject,
  sampling: Settings['sampling'],
): string | undefined {
  const conflict = sampling === 'forward' ? undefined : codec.samplingConflict?.(body);
  if (conflict === undefined) return undefined;
  const { param } = conflict;
  if (sampling === 'refuse' || param === undefined) throw conflict;
  return param;
}

/**
 * Applies the setting `sampling` to a request that was read: drops the member that another one excludes, or throws 400 for `refuse`. The
 * request is read again without the member.
 */
export function applySampling(
  exchange: Exchange,
  sampling: Settings['sampling'],
  options: UnderstandOptions,
): void {
  const { codec, wire } = exchange;
  const path = excludedMember(codec, wire.body ?? {}, sampling);
  if (path === undefined) return;
  exchange.forgetOutline();
  exchange.decoded = undefined;
  wire.outline = undefined;
  understandJson(exchange, editMembers(wire.bytes, { [path]: undefined }), options);
  exchange.values.set(requestLosses, [{ path, kind: 'setting', from: codec.format, to: codec.format }]);
}

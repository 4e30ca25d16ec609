import type { Exchange } from '../call/exchange.ts';
import { editMembers } from '../formats/_shared/edit-members.ts';
import type { Loss } from '../model/extra.ts';
import { callKey } from '../sdk/call-key.ts';
import type { Settings } from '../settings/index.ts';
import { understandJson, type UnderstandOptions } from './json-body.ts';

/** Members that were dropped from a request before a target was chosen, for the translation to report or refuse. */
export const requestLosses = callKey<readonly Loss[]>('request losses');

/**
 * Applies the setting `sampling` to a request that was read: drops the member that another one excludes, or throws 400 for `refuse`. The
 * request is read again without the member.
 */
export function applySampling(
  exchange: Exchange,
  sampling: Settings['sampling'],
  options: UnderstandOptions,
): void {
  if (sampling === 'forward') return;
  const { codec, wire } = exchange;
  const conflict = codec.samplingConflict?.(wire.body ?? {});
  if (conflict === undefined) return;
  const { param: path } = conflict;
  if (sampling === 'refuse' || path === undefined) throw conflict;
  exchange.forgetOutline();
  exchange.decoded = undefined;
  wire.outline = undefined;
  understandJson(exchange, editMembers(wire.bytes, { [path]: undefined }), options);
  exchange.values.set(requestLosses, [{ path, kind: 'setting', from: codec.format, to: codec.format }]);
}

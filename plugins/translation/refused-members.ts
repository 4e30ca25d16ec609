import { isChat, type UpstreamRequest, type Loss } from 'sluice';
import type { Codec, MemberEdits } from 'sluice/channel-kit';
import { inClientWords, settingAt } from './client-words.ts';
import { rewriteMembers, type Call, type Target } from 'sluice/internal';

/**
 * Returns the request with its members edited, and without those that the model is known to refuse, by its traits or by the edits of the call. Each of
 * these is added to `losses` in the client's words. A form stays as it is.
 */
export function withoutRefused(
  call: Call,
  { traits }: Target,
  codec: Codec,
  request: UpstreamRequest,
  losses: Loss[],
  adapted: MemberEdits = {},
): UpstreamRequest {
  const { refused } = call.edits;
  // The gateway keeps the response itself, so that nothing is lost.
  const isKeptHere = traits.keepsResponses === false && Object.hasOwn(call.bodyOutline, 'store');
  const edits = isKeptHere ? { ...adapted, store: undefined } : adapted;
  const { refusedMembers = [] } = traits;
  if (refused === undefined && refusedMembers.length === 0 && Object.keys(edits).length === 0) return request;
  const { body, method = 'POST' } = request;
  const bytes = Buffer.isBuffer(body) ? body : typeof body === 'string' ? Buffer.from(body) : undefined;
  const fixed = refusedMembers.map((one) => (typeof one === 'string' ? { path: one } : one));
  const wanted = [...fixed, ...(refused?.members ?? [])];
  const { bytes: left, taken } =
    bytes === undefined || method !== 'POST' ? { taken: [] } : rewriteMembers(bytes, edits, wanted);
  refused?.found?.(taken);
  if (left === undefined || left === bytes) return request;
  for (const { spelled, as } of taken) {
    const path = as === undefined ? lostPath(call, codec, spelled) : undefined;
    if (path !== undefined && losses.every((loss) => loss.path !== path))
      losses.push({ path, kind: 'setting', from: call.codec.format, to: codec.format });
  }
  return { ...request, body: left };
}

/** Returns the client's path of a member; undefined for one that the gateway has added. */
function lostPath(call: Call, codec: Codec, spelled: string): string | undefined {
  if (codec.format === call.codec.format)
    return Object.hasOwn(call.body, spelled.split('.', 1)[0] ?? '') ? spelled : undefined;
  const setting = settingAt(codec, spelled);
  if (setting === undefined) return spelled;
  const { outline } = call;
  if (isChat(outline) && outline.settings[setting] === undefined) return undefined;
  return inClientWords(call.codec, `settings.${setting}`);
}

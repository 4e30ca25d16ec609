/** Decodes and encodes entries of `reasoning_details`, with the signatures and encrypted payloads that they carry for several providers. */
import type { Proof } from '../../../model/extra.ts';
import { isObject, type JsonObject } from '../../../model/json.ts';
import { sealProof, unsealProof } from '../../_shared/proof.ts';
import { formatName } from '../wire.ts';
import { lookupTable } from '../../../model/lookup-table.ts';

/** Format whose provider made a proof, by the `format` of a `reasoning_details` entry. */
const makers = lookupTable<string>({
  'anthropic-claude-v1': 'messages',
  'google-gemini-v1': 'generate-content',
  'openai-responses-v1': 'responses',
});
const spellings = Object.fromEntries(Object.entries(makers).map(([word, maker]) => [maker, word]));

/** Contents of one entry of `reasoning_details`. */
export interface Detail {
  readonly text: string;
  readonly proof?: Proof;
  /** The block that the proof belongs to, when it is not this reasoning. */
  readonly on?: 'text' | 'tool-call';
  /** The tool call that the entry names. */
  readonly callId?: string;
  /** The proof came in the gateway's own container. */
  readonly sealed?: true;
}

/** Decodes an entry. The maker of the proof is the entry's `format`; a proof sealed by the gateway contains its maker. */
export function readDetail(entry: JsonObject): Detail {
  const words = [entry.text, entry.summary].find((value) => typeof value === 'string');
  const text = typeof words === 'string' ? words : '';
  const callId = typeof entry.id === 'string' && entry.id !== '' ? { callId: entry.id } : {};
  const value = [entry.signature, entry.data].find(
    (candidate) => typeof candidate === 'string' && candidate !== '',
  );
  if (typeof value !== 'string') return { text, ...callId };
  const opened = unsealProof(value);
  if (opened !== undefined) return { text, ...callId, ...opened, sealed: true };
  const format = makers[typeof entry.format === 'string' ? entry.format : ''] ?? formatName;
  // Google's proof is a signature wherever it stands, also under the name "encrypted".
  const kind =
    entry.type === 'reasoning.encrypted' && format !== 'generate-content' ? 'encrypted' : 'signature';
  return { text, ...callId, proof: { format, kind, value } };
}

/** Returns true for a proof whose maker the entries have a word for, so that it needs no container. */
export function isTagged(proof: Proof): boolean {
  return proof.format === formatName || proof.format in spellings;
}

/** Returns an entry that carries a proof to the client, which sends it back with the next turn. `index` is the running number of the reasoning. */
export function writeDetail(
  proof: Proof,
  position: {
    readonly index: number;
    readonly text?: string;
    readonly callId?: string;
    readonly onText?: true;
  },
): JsonObject {
  const { index, callId } = position;
  const known = spellings[proof.format];
  const format = known ?? 'unknown';
  if (position.onText) return { type: 'reasoning.encrypted', data: sealProof(proof, 'text'), format, index };
  const value =
    known === undefined && proof.format !== formatName
      ? sealProof(proof, callId === undefined ? undefined : 'tool-call')
      : proof.value;
  if (callId !== undefined) return { type: 'reasoning.encrypted', id: callId, data: value, format, index };
  if (proof.kind === 'encrypted') return { type: 'reasoning.encrypted', data: value, format, index };
  return { type: 'reasoning.text', text: position.text ?? '', signature: value, format, index };
}

/** Returns the signature that Google's endpoint of this dialect hangs on a tool call. */
export function extraContentSignature(call: JsonObject): Proof | undefined {
  const google = isObject(call.extra_content) ? call.extra_content.google : undefined;
  const value = isObject(google) ? google.thought_signature : undefined;
  return typeof value === 'string' && value !== ''
    ? { format: 'generate-content', kind: 'signature', value }
    : undefined;
}

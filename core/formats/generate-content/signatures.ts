import type { Proof } from '../../model/extra.ts';
import { sealProof, unsealProof } from '../_shared/proof.ts';
import { name } from './wire.ts';

/** What base64 makes of a sealed proof's first characters. */
const sealedStart = 'Z3cxL';

/** Accepted by the provider in place of a signature it never gave, so that history of another vendor can be continued. */
export const placeholderSignature = 'skip_thought_signature_validator';

/** A `thoughtSignature` as a proof; one that the gateway sealed names the vendor that made it. */
export function readSignature(value: string): Proof {
  if (value.startsWith(sealedStart)) {
    const opened = unsealProof(Buffer.from(value, 'base64').toString());
    if (opened !== undefined) return opened.proof;
  }
  return { format: name, kind: 'signature', value };
}

/** A proof as a `thoughtSignature`: base64 is what the field holds, also for another vendor's proof in its container. */
export function writeSignature(proof: Proof): string {
  return proof.format === name ? proof.value : Buffer.from(sealProof(proof)).toString('base64');
}

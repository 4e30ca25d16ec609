/** Proofs of reasoning, sealed for their way through another format. */
import type { Proof } from '../../model/extra.ts';
import { parseObject } from '../../json/parse.ts';

const prefix = 'gw1.';

/**
 * Markers of a sealed proof in a request, plain or in base64. Such a request must not pass through, because the provider would not
 * recognize its own signature.
 */
export const sealMarks: readonly string[] = [prefix, 'Z3cxL'];

/**
 * Returns a foreign proof in a container for the signature field of another format, so that it survives a round trip through a client. `on`:
 * original kind of block, if the carrying format has to put it in another one.
 */
export function sealProof(proof: Proof, on?: 'text' | 'tool-call'): string {
  return (
    prefix +
    Buffer.from(JSON.stringify({ f: proof.format, k: proof.kind, v: proof.value, on })).toString('base64url')
  );
}

interface Unsealed {
  readonly proof: Proof;
  readonly on?: 'text' | 'tool-call';
}

/** Opens what {@link sealProof} made; undefined for a vendor's own signature. */
export function unsealProof(text: string): Unsealed | undefined {
  if (!text.startsWith(prefix)) return undefined;
  const value = parseObject(Buffer.from(text.slice(prefix.length), 'base64url').toString());
  if (typeof value?.f !== 'string' || typeof value.v !== 'string') return undefined;
  const proof: Proof = {
    format: value.f,
    kind: value.k === 'encrypted' ? 'encrypted' : 'signature',
    value: value.v,
  };
  return value.on === 'text' || value.on === 'tool-call' ? { proof, on: value.on } : { proof };
}

/** Returns a signature or hidden reasoning that a client sends back, as the proof of the provider that made it. */
export function proofIn(format: string, kind: Proof['kind'], value: string): Proof {
  return unsealProof(value)?.proof ?? { format, kind, value };
}

/** Returns the proof that an otherwise empty block of reasoning carries for an adjacent block; undefined for a signature of its own. */
export function carriedBy(signature: unknown): Required<Pick<Unsealed, 'proof' | 'on'>> | undefined {
  const { proof, on } = (typeof signature === 'string' ? unsealProof(signature) : undefined) ?? {};
  return proof === undefined || on === undefined ? undefined : { proof, on };
}

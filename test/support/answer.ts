import type { Upstream } from '../../core/sdk/channel.ts';

/** Everything that a reply's body holds. */
export async function all(upstream: Upstream): Promise<Buffer> {
  const { bytes, error } = await outcome(upstream);
  if (error !== undefined) throw error;
  return bytes;
}

/** Body of a reply, and the error it ended with. */
export function outcome(upstream: Upstream): Promise<{ bytes: Buffer; error?: unknown }> {
  const chunks: Buffer[] = [];
  return new Promise((resolve) => {
    upstream.bytes.subscribe({
      next: (bytes) => void chunks.push(bytes),
      error: (error: unknown) => resolve({ bytes: Buffer.concat(chunks), error }),
      complete: () => resolve({ bytes: Buffer.concat(chunks) }),
    });
  });
}

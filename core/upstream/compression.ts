import { Observable } from 'rxjs';
import type { Upstream } from '../sdk/channel.ts';
import { GatewayError } from '../sdk/errors.ts';
import type { Gate } from '../sdk/gate.ts';
import { decompressors } from './decompressors.ts';

/** Undoes a compression that nobody asked for; a cut inside it is a cut of the answer. */
export function decompressed(
  bytes: Observable<Buffer>,
  encoding: Upstream['headers'][string],
  gate: Gate,
): Observable<Buffer> {
  if (encoding === undefined || encoding === 'identity') return bytes;
  const make = decompressors.get(String(encoding).toLowerCase());
  if (make === undefined) return bytes;
  return new Observable((subscriber) => {
    const stream = make();
    stream.on('data', (chunk: Buffer) => {
      subscriber.next(chunk);
      // One read may unpack to a thousand times its size: it is unpacked no faster than it is wanted.
      const opened = gate.opened();
      if (opened === undefined) return;
      stream.pause();
      void (async () => {
        await opened;
        stream.resume();
      })();
    });
    stream.on('end', () => subscriber.complete());
    stream.on('error', (cause) =>
      subscriber.error(
        new GatewayError('upstream_cut', 'The upstream sent a damaged compressed answer.', {
          origin: 'upstream',
          cause,
        }),
      ),
    );
    const subscription = bytes.subscribe({
      next: (chunk) => stream.write(chunk),
      error: (error) => subscriber.error(error),
      complete: () => stream.end(),
    });
    return () => {
      subscription.unsubscribe();
      stream.destroy();
    };
  });
}

import type { Transform } from 'node:stream';
import type { Observable } from 'rxjs';
import type { Upstream } from '../sdk/channel.ts';
import { GatewayError } from '../sdk/errors.ts';
import { ExactBytes, headersOfChangedBytes } from '../sdk/exact-bytes.ts';
import type { Gate } from '../sdk/gate.ts';
import { decompressors } from './decompressors.ts';

/**
 * Returns the response without a compression that the provider applied unrequested. If the provider truncates the compressed body, the
 * stream ends with an error.
 */
export function decompressed(answer: Upstream, gate: Gate): Upstream {
  const { headers, bytes } = answer;
  const encoding = headers['content-encoding'];
  if (encoding === undefined || encoding === 'identity') return answer;
  const make = decompressors.get(String(encoding).toLowerCase());
  if (make === undefined) return answer;
  return { ...answer, headers: headersOfChangedBytes(headers), bytes: unpacked(bytes, make, gate) };
}

function unpacked(bytes: Observable<Buffer>, make: () => Transform, gate: Gate): ExactBytes {
  return new ExactBytes((subscriber) => {
    const stream = make();
    stream.on('data', (chunk: Buffer) => {
      subscriber.next(chunk);
      // One read can decompress to a thousand times its size, so decompression follows the backpressure of the consumer.
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
        new GatewayError('upstream_cut', 'The upstream sent invalid compressed data.', {
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

/** Connects to the host of a URL to check that it answers and when its certificate expires, for `sluice doctor`. */
import { connect as connectTcp, isIP } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import type { TlsOptions } from './connections.ts';

/** Result of a probe of an address. */
export interface Probed {
  /** Time when the certificate of the address expires, in milliseconds since 1970; absent without TLS. */
  readonly certificateEnds?: number;
}

/** Timeout of the connection and its handshake, in milliseconds. */
const timeoutMs = 5_000;

/** Connects to the host of a URL, with TLS where it is https. Rejects with the reason when it does not answer, or its certificate is not valid. */
export function probe(url: string, { ca, servername, verify = true }: TlsOptions = {}): Promise<Probed> {
  const { protocol, hostname, port } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, '');
  const isTls = protocol === 'https:' || protocol === 'wss:';
  const target = { host, port: port === '' ? (isTls ? 443 : 80) : Number(port) };
  return new Promise((resolve, reject) => {
    const name = servername ?? (isIP(host) === 0 ? host : undefined);
    const socket = isTls
      ? connectTls({
          ...target,
          rejectUnauthorized: verify,
          ...(name === undefined ? {} : { servername: name }),
          ...(ca === undefined ? {} : { ca: typeof ca === 'string' ? ca : [...ca] }),
        })
      : connectTcp(target);
    socket.setTimeout(timeoutMs, () => socket.destroy(new Error(`no response within ${timeoutMs} ms`)));
    socket.once('error', reject);
    socket.once(isTls ? 'secureConnect' : 'connect', () => {
      const ends = isTls ? Date.parse((socket as TLSSocket).getPeerCertificate().valid_to) : Number.NaN;
      resolve(Number.isNaN(ends) ? {} : { certificateEnds: ends });
      socket.destroy();
    });
  });
}

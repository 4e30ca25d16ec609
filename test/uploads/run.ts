import { fork, type ChildProcess } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, request as send, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Busboy } from '@fastify/busboy';

const mega = 1024 * 1024;

/** Result of a run. */
export interface Uploads {
  /** Uploads whose bytes at the provider were not those of the client. */
  readonly damaged: number;
  /** Uploads that were not answered 200. */
  readonly failed: number;
  /** Mebibytes that the gateway's process grew by, at most. */
  readonly growth: number;
  /** Response to an upload beyond the limit, and the bytes that were sent before it. */
  readonly refusal: { readonly status: number; readonly sent: number; readonly of: number };
}

/** Sends recordings of 24.9 MiB through a gateway, `atOnce` at a time, `rounds` times, and one of 25.1 MiB that is refused. */
export async function runUploads(options: {
  readonly atOnce: number;
  readonly rounds: number;
  readonly size?: number;
}): Promise<Uploads> {
  const { atOnce, rounds, size = Math.floor(24.9 * mega) } = options;
  const provider = await startProvider();
  const gateway = fork(fileURLToPath(new URL('gateway.ts', import.meta.url)), {
    env: { ...process.env, UPLOADS_UPSTREAM: provider.url },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  try {
    const [access] = (await once(gateway, 'message')) as [{ url: string; key: string }];
    // The first calls load and compile what all of them need.
    await Promise.all(Array.from({ length: atOnce }, () => upload(access, recording(2_500_000))));
    provider.hashes.length = 0;
    const before = await rssOf(gateway);
    let most = before;
    const watching = { on: true };
    const watch = async (): Promise<void> => {
      while (watching.on) {
        // oxlint-disable-next-line no-await-in-loop -- one look after the other
        most = Math.max(most, await rssOf(gateway));
        // oxlint-disable-next-line no-await-in-loop -- as above
        await wait(100);
      }
    };
    const watched = watch();
    let failed = 0;
    let damaged = 0;
    for (let round = 0; round < rounds; round += 1) {
      const files = Array.from({ length: atOnce }, () => recording(size));
      // oxlint-disable-next-line no-await-in-loop -- one round after the other
      const statuses = await Promise.all(files.map((bytes) => upload(access, bytes)));
      failed += statuses.filter(({ status }) => status !== 200).length;
      const arrived = new Set(provider.hashes.splice(0));
      damaged += files.filter((bytes) => !arrived.has(hash(bytes))).length;
    }
    watching.on = false;
    await watched;
    const tooLarge = recording(Math.floor(25.1 * mega));
    // The last of it stays here until the answer has come.
    const refusal = await upload(access, tooLarge, 25 * mega + 32 * 1024);
    return { damaged, failed, growth: (most - before) / mega, refusal: { ...refusal, of: tooLarge.length } };
  } finally {
    gateway.disconnect();
    await once(gateway, 'exit');
    await provider.close();
  }
}

function recording(size: number): Buffer {
  const bytes = randomBytes(size);
  bytes.write('ID3\x03', 0, 'latin1');
  return bytes;
}

function hash(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}

async function rssOf(gateway: ChildProcess): Promise<number> {
  gateway.send('rss');
  const [{ rss }] = (await once(gateway, 'message')) as [{ rss: number }];
  return rss;
}

interface Provider {
  readonly url: string;
  readonly hashes: string[];
  close(): Promise<void>;
}

/** Answers each form with a transcript, and keeps the hash of its file. */
async function startProvider(): Promise<Provider> {
  const hashes: string[] = [];
  const server: Server = createServer((request, response) => {
    const parser = new Busboy({ headers: { 'content-type': request.headers['content-type'] ?? '' } });
    parser.on('file', (_name, stream) => {
      const sum = createHash('sha256');
      stream.on('data', (chunk: Buffer) => void sum.update(chunk));
      stream.on('end', () => hashes.push(sum.digest('hex')));
    });
    parser.on('error', () => response.destroy());
    parser.on('finish', () =>
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"text":"Hello"}'),
    );
    request.on('error', () => {});
    request.pipe(parser);
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    hashes,
    close: () =>
      new Promise((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
}

/** Sends one form, piece by piece, and says how much of it had gone out when the answer came. */
function upload(
  { url, key }: { readonly url: string; readonly key: string },
  bytes: Buffer,
  holdAt = bytes.length,
): Promise<{ readonly status: number; readonly sent: number }> {
  return new Promise((resolve, reject) => {
    let sent = 0;
    const outgoing = send(
      `${url}/v1/audio/transcriptions`,
      {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'multipart/form-data; boundary=x' },
      },
      (response) => {
        const answered = { status: response.statusCode ?? 0, sent };
        response.resume();
        response.on('end', () => resolve(answered));
      },
    );
    outgoing.on('error', reject);
    const field = (name: string): string => `--x\r\ncontent-disposition: form-data; name="${name}"`;
    outgoing.write(`${field('model')}\r\n\r\nwhisper-1\r\n${field('file')}; filename="a.mp3"\r\n\r\n`);
    const piece = 64 * 1024;
    const more = (): void => {
      while (sent < holdAt && !outgoing.destroyed) {
        const chunk = bytes.subarray(sent, Math.min(sent + piece, holdAt));
        sent += chunk.length;
        if (!outgoing.write(chunk)) {
          outgoing.once('drain', more);
          return;
        }
      }
      if (!outgoing.destroyed && holdAt === bytes.length) outgoing.end('\r\n--x--\r\n');
    };
    more();
  });
}

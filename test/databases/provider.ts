/** A provider that has every video and file that is asked for, so that one that starts later has those of one before. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Fake provider with its URL. */
export interface EveryObject {
  readonly url: string;
  close(): Promise<void>;
}

/** Starts one on a free port of 127.0.0.1. */
export async function startEveryObject(): Promise<EveryObject> {
  const server = createServer((request, response) => {
    const [, , kind = '', id = ''] = (request.url ?? '').split(/[/?]/);
    const object = objects[kind]?.(id === '' ? undefined : id);
    request.resume();
    request.once('end', () => {
      response.writeHead(object === undefined ? 404 : 200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(object ?? { error: { message: 'Not found' } }));
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve());
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const objects: Readonly<Record<string, (id?: string) => object>> = {
  videos: (id) => ({
    id: id ?? 'video_there',
    object: 'video',
    model: 'sora-2',
    status: id === undefined ? 'queued' : 'completed',
    progress: id === undefined ? 0 : 100,
    created_at: 1_700_000_000,
    seconds: '4',
    size: '720x1280',
  }),
  files: (id = 'file-there') => ({
    id,
    object: 'file',
    bytes: 5,
    created_at: 1_700_000_000,
    filename: 'hello.txt',
    purpose: 'user_data',
    status: 'processed',
  }),
};

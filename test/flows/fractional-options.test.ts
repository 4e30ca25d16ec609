import { describe, expect, onTestFinished, test } from 'vitest';
import demo from '../../channels/demo/index.ts';
import quota from '../../plugins/quota/index.ts';
import realtimeSessions from '../../plugins/realtime-sessions/index.ts';
import videoTasks from '../../plugins/video-tasks/index.ts';
import { startGateway } from '../support/gateway.ts';
import { SocketClient } from '../support/websocket.ts';
import { newDatabases } from './_one-database.ts';

const budget = { unit: 'micro-dollar', period: 'total', amount: 1_000_000_000 } as const;

describe.each(newDatabases())('with a database of the kind $kind', ({ url, skip }) => {
  test.skipIf(skip !== undefined)(
    'times in the config that are no whole milliseconds stop neither calls, sessions nor videos',
    async () => {
      const gateway = await startGateway({
        database: await url(),
        channels: [demo()],
        plugins: [
          quota({ lease: 1.0007 }),
          realtimeSessions({ lease: 1.0007 }),
          videoTasks({ deadline: 3600.0007, retention: 0.123_456_789 }),
        ],
      });
      onTestFinished(() => gateway.close());
      const { value } = await gateway.apiKeys.create({ name: 'one', budgets: [budget] });
      const headers = { authorization: `Bearer ${value}`, 'content-type': 'application/json' };
      const post = async (path: string, body: object): Promise<number> => {
        const response = await fetch(gateway.url + path, {
          method: 'POST',
          headers,
          body: JSON.stringify(body),
        });
        await response.arrayBuffer();
        return response.status;
      };
      expect(await post('/v1/embeddings', { model: 'demo', input: 'Hello' })).toBe(200);
      expect(await post('/v1/videos', { model: 'demo', prompt: 'the moon' })).toBe(200);
      const client = await SocketClient.open(`${gateway.url}/v1/realtime?model=demo`, { headers });
      client.send({ type: 'response.create' });
      const [end] = await client.until(({ type }) => type === 'response.done' || type === 'error');
      expect(end).toMatchObject({ type: 'response.done' });
      client.socket.close(1000);
      await client.closed;
    },
  );
});

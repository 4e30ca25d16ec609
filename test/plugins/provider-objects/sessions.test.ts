import { toFile } from 'openai';
import { expect, onTestFinished, test } from 'vitest';
import openai from '../../../channels/openai.ts';
import providerObjects from '../../../plugins/provider-objects/index.ts';
import { eventually } from '../../support/eventually.ts';
import { startGateway } from '../../support/gateway.ts';
import { startOpenaiObjects } from '../../support/openai-objects.ts';
import { startRealtimeUpstream } from '../../support/realtime-upstream.ts';
import { SocketClient } from '../../support/websocket.ts';

/** A gateway before a provider of files and one of sessions, which repeats what it is sent. */
async function start() {
  const files = await startOpenaiObjects();
  const talking = await startRealtimeUpstream((session, message) => {
    if (message !== undefined) session.socket.send(message.data, { binary: message.binary });
  });
  const gateway = await startGateway({
    plugins: [providerObjects()],
    channels: [
      openai({ id: 'files', key: 'sk-of-a', baseUrl: `${files.url}/v1`, models: ['gpt-a'] }),
      openai({ id: 'talk', key: 'sk-of-b', baseUrl: talking.url, models: ['talk'] }),
    ],
  });
  onTestFinished(async () => {
    await gateway.close();
    await Promise.all([files.close(), talking.close()]);
  });
  const keyWithFile = async () => {
    const { value } = await gateway.apiKeys.create({ name: 'one' });
    const body = new FormData();
    body.append('purpose', 'user_data');
    body.append('file', await toFile(Buffer.from('secret'), 'secret.txt'));
    const headers = { authorization: `Bearer ${value}` };
    const answer = await fetch(`${gateway.url}/v1/files`, { method: 'POST', headers, body });
    return { headers, file: ((await answer.json()) as { readonly id: string }).id };
  };
  const open = ({ headers }: { readonly headers: Record<string, string> }) =>
    SocketClient.open(`${gateway.url}/v1/realtime?model=talk`, { headers });
  return { talking, keyWithFile, open };
}

const naming = (id: string, eventId = 'event_1') => ({
  type: 'conversation.item.create',
  event_id: eventId,
  item: { type: 'message', role: 'user', content: [{ type: 'input_image', file_id: id }] },
});

test('a message of a session that names a file of another key is an error, and all others go on in their order', async () => {
  const { talking, keyWithFile, open } = await start();
  const [mine, theirs] = [await keyWithFile(), await keyWithFile()];
  const client = await open(mine);
  client.send(naming(mine.file));
  client.send({ type: 'input_audio_buffer.commit' });
  client.send(naming(theirs.file, 'event_2'));
  client.socket.send(Buffer.from(JSON.stringify(naming(theirs.file, 'event_3'))), { binary: true });
  client.send(JSON.stringify(naming(theirs.file, 'event_4')).replace('file_id', String.raw`\u0066ile_id`));
  client.send({ type: 'response.cancel' });
  const errors = await client.until(({ type }) => type === 'error', 3);
  expect(errors).toMatchObject(
    ['event_2', 'event_3', 'event_4'].map((id) => ({
      error: { event_id: id, type: 'invalid_request_error', message: expect.stringContaining(theirs.file) },
    })),
  );
  const sent = await eventually(() => {
    const seen = talking.sessions[0]?.messages.map(({ data }) => data.toString()) ?? [];
    expect(seen).toHaveLength(3);
    return seen;
  });
  expect(sent).toEqual([
    JSON.stringify(naming(mine.file)),
    JSON.stringify({ type: 'input_audio_buffer.commit' }),
    JSON.stringify({ type: 'response.cancel' }),
  ]);
  client.socket.close();
  await client.closed;
});

test('a session names an object that nobody has, and goes on after the error', async () => {
  const { talking, keyWithFile, open } = await start();
  const client = await open(await keyWithFile());
  client.send({
    type: 'session.update',
    session: { tools: [{ type: 'file_search', vector_store_ids: ['vs_1'] }] },
  });
  const [error] = await client.until(({ type }) => type === 'error');
  expect(error).toMatchObject({ error: { param: 'session.tools[0].vector_store_ids[0]' } });
  client.send({ type: 'response.cancel' });
  await client.until(({ type }) => type === 'response.cancel');
  expect(talking.sessions[0]?.messages).toHaveLength(1);
  client.socket.close(1000);
  await talking.sessions[0]?.closed;
});

import { request as send, type Agent, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { configWith, key, type Line, type OperatedGateway } from '../reload/gateway.ts';

/** A config with the demo's models, as source text: `'demo'`. */
export const config = (models: string, more = ''): string =>
  configWith(`channels: [demo({ models: [${models}] })], ${more}`);

/** Plugin that adds its mark to the response headers. */
export const marker = (mark: string): string => `
  import { addReplyHeaders, definePlugin } from 'sluice';
  export default definePlugin({
    name: 'marker',
    stage: 'shape',
    setup: () => (call, next) => {
      addReplyHeaders(call, { 'x-mark': '${mark}' });
      return next(call);
    },
  });`;

/** Sends a chat request, streamed or not. */
export function sendChat(
  gateway: OperatedGateway,
  { model = 'demo', words = 'hello', stream = false, agent = false as Agent | false } = {},
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    send(`${gateway.url}/v1/chat/completions`, { method: 'POST', headers, agent }, resolve)
      .once('error', reject)
      .end(JSON.stringify({ model, stream, messages: [{ role: 'user', content: words }] }));
  });
}

/** Returns the status of a short call. */
export const status = async (gateway: OperatedGateway, model: string): Promise<number> => {
  const answer = await sendChat(gateway, { model });
  await text(answer);
  return answer.statusCode ?? 0;
};

/** Log messages of a reload, and of a failed one. */
export const reloaded = 'reloaded: previous workers finish their calls';
export const failed = 'reload failed, previous configuration kept';

/** Waits for the next line of the log with this sentence, counted from when it was made. */
export function nextLine(gateway: OperatedGateway, sentence: string): () => Promise<Line> {
  const before = gateway.lines(sentence).length;
  return () => gateway.logged(sentence, before + 1);
}

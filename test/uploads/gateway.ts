/** A gateway in a process of its own, whose memory can be asked for: `{url, key}` comes first, then an answer to each message. */
import openai from '../../channels/openai.ts';
import { startGateway } from '../support/gateway.ts';

const gateway = await startGateway({
  channels: [
    openai({ key: 'k', baseUrl: `${process.env.UPLOADS_UPSTREAM ?? ''}/v1`, models: ['whisper-1'] }),
  ],
  log: { level: 'warn' },
});
process.send?.({ url: gateway.url, key: gateway.key });
process.on('message', () => {
  process.send?.({ rss: process.memoryUsage.rss() });
});
process.on('disconnect', () => void gateway.close().then(() => process.exit(0)));

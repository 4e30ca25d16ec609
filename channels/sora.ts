import { bearer, httpChannel } from './_kit/http/http-channel.ts';

/** Sora, and every gateway that offers `/v1/videos` as it does: name its address as `baseUrl`, up to and including `/v1`. */
export default httpChannel({
  name: 'sora',
  catalogue: ['openai'],
  baseUrl: 'https://api.openai.com/v1',
  models: ['sora-*'],
  headers: bearer,
  speaks: { 'create-video': ['videos'], 'get-video': ['videos'], 'delete-video': ['videos'] },
});

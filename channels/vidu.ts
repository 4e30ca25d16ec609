import { httpChannel } from './_kit/http/http-channel.ts';

/** Vidu. */
export default httpChannel({
  name: 'vidu',
  baseUrl: 'https://api.vidu.com/ent/v2',
  models: ['vidu*'],
  headers: (key): Readonly<Record<string, string>> =>
    key === undefined ? {} : { authorization: `Token ${key}` },
  speaks: { 'create-video': ['vidu'], 'get-video': ['vidu'], 'delete-video': ['vidu'] },
});

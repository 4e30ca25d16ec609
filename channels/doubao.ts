import { bearer, httpChannel } from './_kit/http/http-channel.ts';

/** Doubao's videos, behind Volcengine Ark. */
export default httpChannel({
  name: 'doubao',
  catalogue: ['volcengine'],
  baseUrl: 'https://ark.cn-beijing.volces.com/api/v3',
  models: ['doubao-seedance-*'],
  headers: bearer,
  speaks: { 'create-video': ['ark'], 'get-video': ['ark'], 'delete-video': ['ark'] },
});

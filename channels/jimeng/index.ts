import { defineChannel } from 'sluice';
import { withAuthorization } from 'sluice/channel-kit';
import { halves } from '../_kit/identity/halves.ts';
import { overHttp, plainKind } from '../_kit/http/http-channel.ts';
import { volcHeaders } from './signature.ts';

/** Jimeng, behind Volcengine's visual service. The key is written `ACCESS|SECRET`; `jimeng_v30` stands for the service that fits the images. */
export default plainKind(
  defineChannel({
    name: 'jimeng',
    models: ['jimeng_*'],
    setup(options, tools) {
      for (const key of tools.keys) halves(key);
      const signed = withAuthorization(tools, ({ method = 'POST', url, body = '' }, key) => {
        const [access, secret] = halves(key);
        if (typeof body !== 'string' && !Buffer.isBuffer(body))
          throw new Error('This provider does not accept forms.');
        return volcHeaders(
          { method, url: new URL(url), contentType: 'application/json', body },
          { access, secret, region: 'cn-north-1', service: 'cv', at: new Date() },
        );
      });
      return overHttp(options, signed, {
        baseUrl: 'https://visual.volcengineapi.com',
        headers: () => ({}),
        speaks: { 'create-video': ['jimeng'], 'get-video': ['jimeng'] },
      });
    },
  }),
);

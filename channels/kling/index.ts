import { defineChannel } from 'sluice';
import { withAuthorization } from 'sluice/channel-kit';
import { halves } from '../_kit/identity/halves.ts';
import { overHttp, plainKind } from '../_kit/http/http-channel.ts';
import { jwt } from './jwt.ts';

/** Seconds for which a token is good, and for which a clock may be behind. */
const lifetime = 1800;
const leeway = 5;

/** Kling. The key is written `ACCESS|SECRET`. */
export default plainKind(
  defineChannel({
    name: 'kling',
    models: ['kling-*'],
    setup(options, tools) {
      for (const key of tools.keys) halves(key);
      const signed = withAuthorization(tools, (_request, key) => {
        const [access, secret] = halves(key);
        const now = Math.floor(Date.now() / 1000);
        const token = jwt({ iss: access, exp: now + lifetime, nbf: now - leeway }, secret);
        return { authorization: `Bearer ${token}` };
      });
      return overHttp(options, signed, {
        baseUrl: 'https://api-singapore.klingai.com',
        headers: () => ({}),
        speaks: { 'create-video': ['kling'], 'get-video': ['kling'] },
      });
    },
  }),
);

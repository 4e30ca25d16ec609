import type { Format } from '../../sdk/format.ts';
import { chat } from './codec.ts';
import { countTokens } from './count-tokens.ts';
import { embed } from './embed.ts';
import { errorReply } from './errors.ts';
import { images } from './images/index.ts';
import { models } from './models.ts';
import { routes } from './routes.ts';
import { speak } from './speak.ts';
import { videos } from './videos/index.ts';
import { name } from './wire.ts';

const generateContent: Format = {
  name,
  routes,
  codecs: { chat, 'count-tokens': countTokens, embed, speak, ...images, ...videos },
  errorReply,
  replyHeaders: (requestId) => ({ 'x-request-id': requestId }),
  models,
};

/** The generateContent format: `/v1beta/models/{model}:generateContent`, its stream, its counts and its model list. */
export default generateContent;

import openrouter from '../../channels/openrouter.ts';
import { channelSuite } from '../suites/channel-suite.ts';

channelSuite(openrouter, {
  basePath: '/api/v1',
  format: 'chat-completions',
  path: '/chat/completions',
  url: '/chat/completions',
  credentials: { authorization: 'Bearer KEY' },
  baseUrl: 'https://openrouter.ai/api/v1',
  models: { 'anthropic/claude-opus-5': { reasoning: 'object', outputLimitField: 'max_tokens' } },
});

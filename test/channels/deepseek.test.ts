import deepseek from '../../channels/deepseek.ts';
import { channelSuite } from '../suites/channel-suite.ts';

channelSuite(deepseek, {
  format: 'chat-completions',
  path: '/chat/completions',
  url: '/chat/completions',
  credentials: { authorization: 'Bearer KEY' },
  baseUrl: 'https://api.deepseek.com/v1',
  models: {
    'deepseek-v4-pro': { reasoning: 'thinking', replaysReasoning: true, outputLimitField: 'max_tokens' },
  },
});

import groq from '../../channels/groq.ts';
import { channelSuite } from '../suites/channel-suite.ts';

channelSuite(groq, {
  basePath: '/openai/v1',
  format: 'chat-completions',
  path: '/chat/completions',
  url: '/chat/completions',
  credentials: { authorization: 'Bearer KEY' },
  baseUrl: 'https://api.groq.com/openai/v1',
  models: {
    'llama-3.3-70b-versatile': {
      reasoning: 'none',
      refuses: ['logprobs', 'topLogprobs', 'choices', 'customTools'],
    },
    'openai/gpt-oss-120b': { reasoning: 'effort', efforts: ['low', 'medium', 'high'] },
  },
});

/** MiniMax: chat, also in the messages format, and videos. */
import { defineChannel, type ChannelParts, type ChannelTools } from 'sluice';
import { apiKey, bearer, overHttp, plainKind, traitsByModel } from '../_kit/http/http-channel.ts';
import { inBoth, withMessages, type MessagesSide } from '../_kit/dialect/messages-side.ts';
import { thinksAlike } from '../_kit/dialect/open-models.ts';
import { minimaxVideos, openVideos, videoFormat } from './videos.ts';

const home = 'https://api.minimax.io/v1';

const ranges = { temperature: { min: 0.01, max: 1 } };

const side: MessagesSide = {
  instead: ['/v1', '/anthropic/v1'],
  headers: apiKey,
  models: ['MiniMax-M2*', 'MiniMax-M3*'],
  // https://platform.minimax.io/docs/api-reference/text-chat-anthropic
  traits: (chat) => ({ ...inBoth(chat), ranges }),
};

/** MiniMax: chat, also in the messages format (https://platform.minimax.io/docs/api-reference/text-anthropic-api), and videos. In China, `baseUrl: 'https://api.minimaxi.com/v1'`. https://platform.minimax.io/docs/api-reference/text-openai-api */
export default plainKind(
  defineChannel({
    name: 'minimax',
    catalogue: ['minimax'],
    models: ['MiniMax-*', 'T2V-01*', 'I2V-01*', 'S2V-01*'],
    setup(options, tools: ChannelTools): ChannelParts {
      const speaks = {
        chat: ['chat-completions'],
        'create-video': [videoFormat],
        'get-video': [videoFormat],
      };
      const shared = { headers: bearer, speaks, traits: chatTraits };
      const parts = overHttp(options, tools, { ...shared, baseUrl: home });
      // The two versions of the API are siblings below this root.
      const root = (options.baseUrl ?? home).replace(/\/v\d+\/*$/, '');
      const videos = overHttp({ ...options, baseUrl: root }, tools, { ...shared, baseUrl: root });
      const chats = withMessages(parts, options, tools, {
        baseUrl: home,
        side,
      });
      return {
        ...chats,
        codecs: minimaxVideos,
        open: (call, request) =>
          request.format === videoFormat ? openVideos(call, videos.open, request) : chats.open(call, request),
      };
    },
  }),
);

const chatTraits = traitsByModel({
  '*': {
    ...thinksAlike,
    outputLimitField: 'max_completion_tokens',
    inlineThinking: true,
    // LiteLLM, litellm/llms/minimax/chat/transformation.py: marks are kept.
    cacheMark: 'cache_control',
    // https://platform.minimax.io/docs/api-reference/text-openai-api has no `response_format` for its text models.
    jsonSchema: false,
    ranges,
    refuses: [
      'customTools',
      'choices',
      'frequencyPenalty',
      'presencePenalty',
      'logprobs',
      'topLogprobs',
      'topK',
    ],
  },
  // Thinking cannot be switched off before M3. `@ai-sdk/minimax` and AgentScope (`integration/model/minimax`) say the same.
  'MiniMax-M3*': { reasoning: 'thinking', thinkingType: 'adaptive', stopsThinking: true },
});

import { openaiLike } from './_kit/dialect/openai-like.ts';

/** OVHcloud AI Endpoints. https://help.ovhcloud.com/csm/en-public-cloud-ai-endpoints-getting-started */
export default openaiLike({
  name: 'ovhcloud',
  catalogue: ['ovhcloud'],
  baseUrl: 'https://oai.endpoints.kepler.ai.cloud.ovh.net/v1',
  models: 'discover',
  speaks: { chat: ['chat-completions'], embed: ['embeddings'], transcribe: ['audio'] },
  openModels: { reasoning: 'template' },
  thinking: { reasoning: 'effort', efforts: ['low', 'medium', 'high'] },
  traits: {
    '*': {
      reasoning: 'none',
      outputLimitField: 'max_tokens',
      // LiteLLM 1.110.2, litellm/llms/ovhcloud/chat/transformation.py: `reasoning`, once `reasoning_content`.
      reasoningField: 'reasoning',
    },
  },
});

import { openaiLike } from './_kit/dialect/openai-like.ts';

/** NVIDIA NIM, in its catalogue or (`baseUrl`) on machines of your own. https://docs.api.nvidia.com/nim/reference/llm-apis */
export default openaiLike({
  name: 'nvidia',
  catalogue: ['nvidia_nim'],
  baseUrl: 'https://integrate.api.nvidia.com/v1',
  models: ['*/*'],
  discover: true,
  speaks: { chat: ['chat-completions'], embed: ['embeddings'] },
  // https://build.nvidia.com/z-ai/glm5/modelcard: `chat_template_kwargs`.
  openModels: { reasoning: 'template' },
  traits: {
    '*': {
      reasoning: 'none',
      outputLimitField: 'max_tokens',
      // github:sipeed/picoclaw#1019, github:NVIDIA/garak#748: "Extra inputs are not permitted".
      refuses: ['choices', 'metadata', 'serviceTier', 'promptCacheKey', 'verbosity'],
      refusedMembers: ['prompt_cache_key', 'store', 'verbosity', 'safety_identifier'],
    },
  },
});

import { bearer, httpChannel } from './_kit/http/http-channel.ts';

/** A LiteLLM proxy behind `baseUrl`: it speaks every format to every model. https://docs.litellm.ai/docs/supported_endpoints */
export default httpChannel({
  name: 'litellm',
  baseUrl: 'http://localhost:4000/v1',
  models: 'discover',
  headers: bearer,
  modelList: '/models',
  // litellm 1.77.5, main.py and proxy/route_llm_request.py
  routingFields: [
    'fallbacks',
    'context_window_fallback_dict',
    'models',
    'model_list',
    'user_config',
    'deployment_id',
    'prompt_id',
    'api_base',
    'base_url',
    'api_key',
    'custom_llm_provider',
    'mock_response',
  ],
  speaks: {
    chat: ['chat-completions', 'messages', 'responses'],
    'count-tokens': ['messages'],
    embed: ['embeddings'],
    rerank: ['rerank'],
    moderate: ['moderations'],
    ocr: ['ocr'],
    'generate-image': ['images'],
    'edit-image': ['images'],
    transcribe: ['audio'],
    speak: ['audio'],
    realtime: ['realtime'],
  },
});

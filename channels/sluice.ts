import { bearer, httpChannel } from './_kit/http/http-channel.ts';

/** Another Sluice behind `baseUrl`: every format passes through, and it decides who answers. */
export default httpChannel({
  name: 'sluice',
  baseUrl: 'http://localhost:8080/v1',
  models: 'discover',
  headers: bearer,
  modelList: '/models',
  // Objects that the other gateway keeps for the channel's key.
  keeps: {
    'chat-completions': [
      'files',
      'uploads',
      'batches',
      'fine_tuning/jobs',
      'vector_stores',
      'containers',
      'evals',
    ],
    messages: ['messages/batches'],
  },
  speaks: {
    chat: ['chat-completions', 'messages', 'responses', 'text-completions'],
    'count-tokens': ['messages', 'responses'],
    compact: ['responses'],
    embed: ['embeddings'],
    rerank: ['rerank'],
    moderate: ['moderations'],
    ocr: ['ocr'],
    'generate-image': ['images'],
    'edit-image': ['images'],
    'vary-image': ['images'],
    transcribe: ['audio'],
    'translate-audio': ['audio'],
    speak: ['audio'],
    realtime: ['realtime'],
    'create-video': ['videos'],
    'get-video': ['videos'],
  },
});

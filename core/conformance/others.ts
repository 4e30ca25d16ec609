import { asWave } from '../formats/_shared/speech.ts';
import { at, countAt, holds, type Trial } from './trial.ts';

/** An image of one pixel. */
const pixel =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

/** A second of silence. */
const silence = new Uint8Array(asWave(Buffer.alloc(32_000), 16_000));

/** Trials of other operations than chats, without those that cost more than cents (images, videos, realtime). */
export const otherTrials: readonly Trial[] = [
  {
    name: 'token counts',
    operation: 'count-tokens',
    requests: 1,
    input: 0,
    output: 0,
    async run({ request, model }) {
      const { json } = await request('/v1/messages/count_tokens', {
        model,
        messages: [{ role: 'user', content: 'How many tokens are these?' }],
      });
      holds(countAt(json, 'input_tokens') > 0, 'no tokens are counted');
    },
  },
  {
    name: 'embeddings',
    operation: 'embed',
    requests: 1,
    input: 20,
    output: 0,
    async run({ request, model }) {
      const { json } = await request('/v1/embeddings', { model, input: ['a lamp', 'a cat'] });
      const vectors = [0, 1].map((index) => at(json, 'data', index, 'embedding'));
      holds(
        vectors.every((vector) => Array.isArray(vector) && vector.length > 0),
        'there are not as many vectors as texts',
      );
      holds(countAt(json, 'usage', 'prompt_tokens') > 0, 'no tokens are told');
    },
  },
  {
    name: 'rerank',
    operation: 'rerank',
    requests: 1,
    input: 50,
    output: 0,
    async run({ request, model }) {
      const documents = ['Lamps give light.', 'Cats catch mice.', 'Bread is baked.'];
      const { json } = await request('/v1/rerank', { model, query: 'What catches mice?', documents });
      const first = at(json, 'results', 0, 'index');
      holds(first === 1, `the best document is number ${String(first)}, where 1 is`);
    },
  },
  {
    name: 'ocr',
    operation: 'ocr',
    requests: 1,
    input: 0,
    output: 0,
    async run({ request, model }) {
      const document = { type: 'image_url', image_url: `data:image/png;base64,${pixel}` };
      const { json } = await request('/v1/ocr', { model, document });
      holds(typeof at(json, 'pages', 0, 'markdown') === 'string', 'there is no page with text');
      holds(countAt(json, 'usage_info', 'pages_processed') === 1, 'one page was not counted as one');
    },
  },
  {
    name: 'moderations',
    operation: 'moderate',
    requests: 1,
    input: 20,
    output: 0,
    async run({ request, model }) {
      const { json } = await request('/v1/moderations', { model, input: 'The cat sleeps.' });
      holds(at(json, 'results', 0, 'flagged') === false, 'a sleeping cat is flagged');
    },
  },
  {
    name: 'speech',
    operation: 'speak',
    requests: 1,
    input: 20,
    output: 100,
    async run({ request, model }) {
      const { bytes } = await request('/v1/audio/speech', {
        model,
        input: 'Good day.',
        voice: 'alloy',
        response_format: 'wav',
      });
      holds(bytes.subarray(0, 4).toString('latin1') === 'RIFF', 'the sound is no WAV file');
    },
  },
  {
    name: 'audio to text',
    operation: 'transcribe',
    requests: 1,
    input: 50,
    output: 20,
    async run({ request, model }) {
      const form = new FormData();
      form.set('model', model);
      form.set('file', new Blob([silence], { type: 'audio/wav' }), 'silence.wav');
      const { json } = await request('/v1/audio/transcriptions', form);
      holds(typeof at(json, 'text') === 'string', 'the answer has no text');
    },
  },
];

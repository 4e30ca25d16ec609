import { openaiLike } from '../_kit/dialect/openai-like.ts';
import { xaiBatches } from './batches.ts';
import { withSessions } from './sessions.ts';
import { edits, mediaFormat, speech, videoCodecs, withWaiting } from './media.ts';

/** Models that think answer 400 to penalties and stop sequences. https://docs.x.ai/docs/guides/reasoning */
const refuses = ['topK', 'presencePenalty', 'frequencyPenalty', 'stop'];
const grokEfforts = {
  reasoning: 'effort',
  thinksByDefault: true,
  efforts: ['low', 'medium', 'high'],
  refuses,
} as const;
const thinksAlike = { reasoning: 'none', thinksByDefault: true, stopsThinking: false, refuses } as const;

/**
 * xAI. Models that reason answer 400 to penalties and stop sequences. https://docs.x.ai/docs/api-reference
 * It searches in Responses alone; what asked for that in chat completions (`search_parameters`) is answered 410:
 * https://docs.x.ai/docs/guides/tools/overview
 */
export default openaiLike({
  name: 'xai',
  catalogue: ['xai'],
  baseUrl: 'https://api.x.ai/v1',
  models: ['grok-*'],
  speaks: {
    chat: ['chat-completions', 'responses'],
    'generate-image': ['images'],
    'edit-image': [mediaFormat],
    'create-video': [mediaFormat],
    'get-video': [mediaFormat],
    speak: [mediaFormat],
    realtime: ['realtime'],
  },
  codecs: { ...videoCodecs, ...(edits === undefined ? {} : { 'edit-image': edits }), speak: speech },
  beside: (parts) => withSessions(withWaiting(parts)),
  // https://openrouter.ai/x-ai/grok-voice-tts-1.0 (2026-05-15). The model page of xAI had 4.20 dollars for a million in 2026-04: the higher counts.
  prices: {
    'grok-voice-tts*': { perCharacter: 0.000_015 },
    // 0.08 dollars for a minute and 0.004 for an item of text: https://docs.x.ai/developers/models/speech-to-speech, read 2026-09-30.
    'grok-voice-think*': { perSecond: 0.001_333_333_334, perCall: 0.004 },
    'grok-voice-fast*': { perSecond: 0.001_333_333_334, perCall: 0.004 },
  },
  routingFields: ['search_parameters'],
  keeps: { 'chat-completions': ['files', 'batches'] },
  batchShare: 0.5,
  // 1 dollar is 10,000,000,000 ticks. Tools that it runs are included: https://docs.x.ai/developers/cost-tracking
  statedCost: ({ cost_in_usd_ticks: ticks }) => (typeof ticks === 'number' ? ticks / 1e10 : undefined),
  batches: xaiBatches,
  // The catalogue knows which models think; these are those that an effort makes think more.
  thinking: grokEfforts,
  traits: {
    // https://docs.x.ai/developers/tools/remote-mcp
    '*': { serverTools: 'responses', mcp: ['responses'], reasoning: 'none', refuses: ['topK'] },
    // https://docs.x.ai/docs/guides/reasoning: they think by themselves, and answer 400 to `reasoning_effort`.
    ...Object.fromEntries(
      [
        'grok-4',
        'grok-4-0709*',
        'grok-4-fast*',
        'grok-4-1-fast*',
        'grok-4.20*',
        'grok-code-fast*',
        'grok-build*',
      ].map((model) => [model, thinksAlike]),
    ),
    'grok-3-mini*': { ...grokEfforts, efforts: ['low', 'high'], stopsThinking: false },
    // The effort of this one is a number of agents.
    'grok-4.20-multi-agent*': {
      ...grokEfforts,
      efforts: ['low', 'medium', 'high', 'xhigh'],
      stopsThinking: false,
    },
    // https://docs.x.ai/developers/model-capabilities/text/reasoning
    'grok-4.3*': { ...grokEfforts, efforts: ['none', 'low', 'medium', 'high'] },
    // https://docs.x.ai/developers/model-capabilities/text/reasoning has no `none` for these.
    'grok-4.5*': grokEfforts,
    'grok-4.6*': grokEfforts,
    'grok-4.7*': grokEfforts,
    'grok-*non-reasoning*': {
      reasoning: 'none',
      thinksByDefault: false,
      stopsThinking: true,
      refuses: ['topK'],
    },
    // github:miaoxworld/NativeTavern#83: it takes no penalties, though it does not think.
    'grok-4.20*non-reasoning*': { refuses: ['topK', 'presencePenalty', 'frequencyPenalty'] },
    'grok-*image*': { images: { streams: false, most: 10, qualities: [], styles: [] } },
  },
});

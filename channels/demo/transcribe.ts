import type { GatewayEvent } from 'sluice';
import type { TranscribeRequest, TranscriptSegment } from 'sluice/channel-kit';
import type { DemoOperation } from './demo-operation.ts';

/** Number of bytes of a recording that stand for one word. */
const bytesPerWord = 8_000;

const words = ['the', 'quick', 'brown', 'fox', 'jumps', 'over', 'the', 'lazy', 'dog'];

/** Describes the size of the recording in words that depend only on it, without analysing the sound. */
export const transcribe: DemoOperation<TranscribeRequest> = {
  speaks: ['audio'],
  text: ({ prompt = '' }) => prompt,
  answer({ file, stream, language = 'english' }) {
    const count = Math.min(200, 1 + Math.floor(file.size / bytesPerWord));
    const transcript = Array.from({ length: count }, (_, index) => words[index % words.length] ?? '');
    const text = `${transcript.join(' ')} (${file.size} bytes)`;
    const seconds = count / 2;
    const segments = transcript.map((word, index): TranscriptSegment => ({
      start: index / 2,
      end: (index + 1) / 2,
      text: word,
      extra: {
        audio: {
          id: index,
          seek: 0,
          tokens: [index],
          temperature: 0,
          avg_logprob: -0.1,
          compression_ratio: 1,
          no_speech_prob: 0.01,
        },
      },
    }));
    return [
      ...(stream ? pieces(text) : []),
      { type: 'result', value: { text, language, duration: seconds, segments } },
      {
        type: 'usage',
        usage: {
          input: 0,
          output: 0,
          cacheRead: 0,
          cacheWrite: 0,
          reasoning: 0,
          units: { seconds },
        },
      },
    ];
  },
};

function pieces(text: string): readonly GatewayEvent[] {
  return (text.match(/\S+\s*/g) ?? []).map((piece) => ({
    type: 'text-delta',
    block: 0,
    choice: 0,
    text: piece,
  }));
}

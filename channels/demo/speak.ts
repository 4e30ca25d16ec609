/** Generates sound for the demo: a tone whose length grows with the text. */
import type { GatewayEvent } from 'sluice';
import { asWave, type SpeakRequest } from 'sluice/channel-kit';
import type { DemoOperation } from './demo-operation.ts';

const rate = 24_000;

/** Samples of a tone whose length grows with the text, and whose height is the voice's. */
export const speak: DemoOperation<SpeakRequest> = {
  speaks: ['audio'],
  text: ({ text }) => text,
  answer({ text, voice, fileFormat }) {
    const samples = tone(text, typeof voice === 'string' ? voice : voice.id);
    const bytes = fileFormat === 'pcm' ? samples : asWave(samples, rate);
    const start: GatewayEvent = {
      type: 'media-start',
      block: 0,
      choice: 0,
      media: 'audio',
      mimeType: fileFormat === 'pcm' ? 'audio/pcm' : 'audio/wav',
    };
    const deltas: GatewayEvent[] = [];
    // A multiple of three, so that each piece is base64 without an end.
    const piece = 9_600;
    for (let at = 0; at < bytes.length; at += piece) {
      const data = bytes.toString('base64', at, Math.min(at + piece, bytes.length));
      deltas.push({ type: 'media-delta', block: 0, choice: 0, data });
    }
    const tokens = Math.ceil(text.length / 4);
    return [
      start,
      ...deltas,
      { type: 'media-end', block: 0, choice: 0 },
      {
        type: 'usage',
        usage: {
          input: tokens,
          output: tokens * 10,
          cacheRead: 0,
          cacheWrite: 0,
          reasoning: 0,
          units: { characters: [...text].length },
        },
      },
    ];
  },
};

function tone(text: string, voice: string): Buffer {
  const seconds = Math.min(20, 0.05 * text.length);
  const samples = Buffer.alloc(Math.max(1, Math.round(seconds * rate)) * 2);
  const height = 200 + (voice.length % 10) * 40;
  for (let at = 0; at < samples.length; at += 2) {
    const value = Math.sin(((at / 2) * height * 2 * Math.PI) / rate);
    samples.writeInt16LE(Math.round(value * 8_000), at);
  }
  return samples;
}

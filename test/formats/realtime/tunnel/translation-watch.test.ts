import { describe, expect, it } from 'vitest';
import { TranslationWatch } from '../../../../core/formats/realtime/tunnel/watch.ts';
import type { SocketMessage } from '../../../../core/model/realtime.ts';

const text = (value: unknown): SocketMessage => ({ data: Buffer.from(JSON.stringify(value)), binary: false });
const sound = (seconds: number): string => Buffer.alloc(seconds * 48_000).toString('base64');
const type = 'session.input_audio_buffer.append';
const append = (seconds: number): SocketMessage => text({ type, audio: sound(seconds) });
const closed = (usage?: object): SocketMessage => text({ type: 'session.closed', event_id: 'e', usage });

describe('the sound of a session that translates', () => {
  it('is told after thirty seconds of it, and the rest when it is over', () => {
    const watch = new TranslationWatch();
    expect(watch.sent(append(20))).toBeUndefined();
    expect(watch.sent(append(15))?.units?.seconds).toBeCloseTo(35, 3);
    expect(watch.sent(append(5))).toBeUndefined();
    expect(watch.unreported?.units?.seconds).toBeCloseTo(5, 3);
    expect(watch.unreported).toBeUndefined();
    expect(watch.unfinished).toBeUndefined();
  });

  it.each([
    ['behind other members', { event_id: 'a', audio: sound(2), type }],
    ['beside a member of the same name', { type, x: { audio: 'AAAA' }, audio: sound(2) }],
  ])('counts %s', (_where, event) => {
    const watch = new TranslationWatch();
    watch.sent(text(event));
    expect(watch.unreported?.units?.seconds).toBeCloseTo(2, 2);
  });

  it.each([
    ['as long as the provider says', { input_seconds: 4.4, output_seconds: 9 }, 4.4],
    ['what was counted where the provider says nothing', undefined, 4],
    ['nothing where the provider took none', { input_seconds: 0 }, 0],
    ['no more than makes sense', { input_seconds: 1e300 }, 1e9],
  ])('is in the end %s', (_how, usage, seconds) => {
    const watch = new TranslationWatch();
    watch.sent(append(4));
    expect(watch.read(closed(usage))?.units?.seconds ?? 0).toBeCloseTo(seconds, 3);
    expect(watch.unreported).toBeUndefined();
  });

  it('is paid for as told though the provider counts less in the end', () => {
    const watch = new TranslationWatch();
    watch.sent(append(31));
    expect(watch.read(closed({ input_seconds: 30 }))).toBeUndefined();
    expect(watch.unreported).toBeUndefined();
  });

  it('is no other message, and no word of the end that is only mentioned', () => {
    const watch = new TranslationWatch();
    watch.sent(text({ type: 'session.update', session: { audio: sound(9) } }));
    watch.sent({ data: Buffer.alloc(48_000), binary: true });
    const delta = {
      type: 'session.output_transcript.delta',
      delta: '"session.closed"',
      usage: { input_seconds: 7 },
    };
    expect(watch.read(text(delta))).toBeUndefined();
    expect(watch.read({ data: Buffer.alloc(0), binary: false, close: 1000 })).toBeUndefined();
    expect(watch.unreported).toBeUndefined();
  });
});

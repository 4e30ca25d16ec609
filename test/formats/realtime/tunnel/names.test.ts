import { describe, expect, it } from 'vitest';
import { GatewayError } from '../../../../core/sdk/errors.ts';
import { namesOf } from '../../../../core/formats/realtime/tunnel/names.ts';
import type { SocketMessage } from '../../../../core/model/realtime.ts';

const text = (value: unknown): SocketMessage => ({ data: Buffer.from(JSON.stringify(value)), binary: false });
const read = (message: SocketMessage | GatewayError): unknown => {
  if (message instanceof GatewayError) throw message;
  return JSON.parse(message.data.toString());
};
const names = namesOf('mine', 'theirs');

describe('from the client to the provider', () => {
  it.each([
    [
      { type: 'session.update', session: { model: 'mine', voice: 'a' } },
      { session: { model: 'theirs', voice: 'a' } },
    ],
    [{ type: 'response.create', response: { model: 'mine' } }, { response: { model: 'theirs' } }],
    [
      {
        type: 'session.update',
        session: { audio: { input: { transcription: { model: 'mine', language: 'en' } } } },
      },
      { session: { audio: { input: { transcription: { model: 'theirs', language: 'en' } } } } },
    ],
    [
      { type: 'transcription_session.update', session: { input_audio_transcription: { model: 'mine' } } },
      { session: { input_audio_transcription: { model: 'theirs' } } },
    ],
  ])('the name is replaced: %j', (message, expected) => {
    expect(read(names.toProvider(text(message)))).toEqual({ type: message.type, ...expected });
  });

  it.each([
    [{ type: 'session.update', session: { voice: 'a' } }],
    [{ type: 'session.update', session: { audio: { input: { transcription: { model: 'whisper' } } } } }],
    [{ type: 'session.update', session: { model: 'theirs' } }],
    [{ type: 'session.update', session: 'model' }],
    [{ type: 'conversation.item.create', item: { model: 'other' } }],
    [{ model: 'other' }],
  ])('the message is the same, byte for byte: %j', (message) => {
    const given = text(message);
    expect(names.toProvider(given)).toBe(given);
  });

  it('another model is refused, wherever the type stands', () => {
    expect(names.toProvider(text({ type: 'response.create', response: { model: 'other' } }))).toMatchObject({
      param: 'response.model',
    });
    expect(names.toProvider(text({ session: { model: 'other' }, type: 'session.update' }))).toBeInstanceOf(
      GatewayError,
    );
  });

  it.each([
    ['an escape in the name of the member', '{"type":"session.update","session":{"mod\\u0065l":"other"}}'],
    ['a type that is written twice', '{"type":"ping","session":{"model":"other"},"type":"session.update"}'],
  ])('nor does %s hide it', (_how, message) => {
    expect(names.toProvider({ data: Buffer.from(message), binary: false })).toBeInstanceOf(GatewayError);
  });

  it('binary messages and the close are never read', () => {
    const data = Buffer.from(JSON.stringify({ type: 'response.create', response: { model: 'other' } }));
    for (const message of [
      { data, binary: true },
      { data, binary: false, close: 1000 },
    ])
      expect(names.toProvider(message)).toBe(message);
  });
});

describe('from the provider to the client', () => {
  it('the session is shown under the name that was asked for', () => {
    for (const type of ['session.created', 'session.updated'])
      expect(read(names.toClient(text({ type, session: { model: 'theirs', id: 's' } })))).toEqual({
        type,
        session: { model: 'mine', id: 's' },
      });
  });

  it('everything else is the same, byte for byte', () => {
    for (const message of [
      { type: 'session.created', session: { model: 'a third' } },
      { type: 'response.done', response: { model: 'theirs' } },
    ]) {
      const given = text(message);
      expect(names.toClient(given)).toBe(given);
    }
    const given = text({ type: 'session.created', session: { model: 'same' } });
    expect(namesOf('same', 'same').toClient(given)).toBe(given);
  });
});

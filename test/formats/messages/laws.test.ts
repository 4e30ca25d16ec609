/*
 * There and back. Accepted exceptions, all of them spellings that the format itself treats alike:
 * - an explicit null is absent;
 * - `stop_sequences` as one string becomes a list, `input` and `text` that are not given come back empty;
 * - a data URL in a `url` source becomes a `base64` source, a missing `media_type` is read from the bytes;
 * - `thinking: {type: 'enabled'}` without a budget gets one, because providers insist on it;
 * - thinking without a signature, and thinking of another vendor, is left out (and reported);
 * - a null in `message_delta.usage` beside a number in `message_start` comes back as that number.
 */
import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../core/model/json.ts';
import { checkLegal } from '../../support/legal-messages.ts';
import {
  bodyOf,
  chat,
  context,
  count,
  decode,
  encode,
  fixture,
  fixtures,
  fold,
  framesOf,
  hasFixture,
  wireOf,
} from './support.ts';

describe('a request that is decoded and encoded again', () => {
  it.each(fixtures('requests', '.json'))('%s is what the client sent', (name) => {
    const body = bodyOf(name);
    chat.validate(body, {});
    const { body: encoded, losses, path } = encode(chat.decodeRequest(body, {}));
    expect(encoded).toEqual(body);
    expect(losses).toEqual([]);
    expect(path).toBe('/messages');
  });

  it.each(fixtures('count-tokens', '.json'))('count %s is what the client sent', (name) => {
    const body = bodyOf(name, 'count-tokens');
    const { body: encoded, losses, path } = encode(count.decodeRequest(body, {}));
    expect(encoded).toEqual(body);
    expect(losses).toEqual([]);
    expect(path).toBe('/messages/count_tokens');
  });

  it('takes the model of the channel', () => {
    const request = chat.decodeRequest(bodyOf('plain'), {});
    expect(encode(request, { model: 'upstream-name' }).body.model).toBe('upstream-name');
  });

  it("keeps unknown fields that look like the gateway's own notes", () => {
    const body: JsonObject = { ...bodyOf('plain'), $reasoning: { mode: 'on' }, $tools: 'empty', $$x: 1 };
    expect(encode(chat.decodeRequest(body, {})).body).toEqual(body);
  });
});

describe('a whole reply that is decoded and encoded again', () => {
  it.each(fixtures('replies', '.json'))('%s is what the provider sent', (name) => {
    const body = JSON.parse(fixture('replies', `${name}.json`)) as JsonObject;
    const whole = chat.encodeWhole(context());
    for (const event of chat.decodeWhole(body, {})) whole.event(event);
    expect(whole.end()).toEqual(body);
  });

  it('counts come back, with what is unknown', () => {
    const body = { input_tokens: 12, context_management: { original_input_tokens: 40 } };
    const events = count.decodeWhole(body, {});
    expect(events).toHaveLength(1);
    expect(events[0]).toMatchObject({ type: 'result', value: { tokens: 12 } });
    const whole = count.encodeWhole(context());
    for (const event of events) whole.event(event);
    expect(whole.end()).toEqual(body);
  });
});

describe('a stream that is decoded and encoded again', () => {
  it.each(fixtures('streams', '.sse'))('%s is what the provider sent, without the pings', (name) => {
    const text = fixture('streams', `${name}.sse`);
    const frames = framesOf(decode(text));
    expect(checkLegal(frames)).toEqual([]);
    expect(frames).toEqual(wireOf(text).filter(({ event }) => event !== 'ping'));
    expect(fold(frames)).toEqual(fold(wireOf(text)));
  });

  it.each(fixtures('streams', '.sse').filter((name) => hasFixture('streams', `${name}.events.json`)))(
    '%s means the events beside it',
    (name) => {
      const golden: unknown = JSON.parse(fixture('streams', `${name}.events.json`));
      expect(decode(fixture('streams', `${name}.sse`))).toEqual(golden);
    },
  );
});

/*
 * Law 1 for chat completions. Accepted differences:
 * - `null` for an optional field means "not given" and may be left out (`content: null` of an assistant turn is written);
 * - deprecated and tolerated spellings come back in the official form: `functions`/`function_call` as tools, role `function` as `tool`,
 *   `image_url` as a bare string, tool arguments as an object, a tool call without `type`;
 * - an effort word in unusual case, and `index` in the tool calls of a whole reply.
 */
import { describe, expect, it } from 'vitest';
import { ChatFold } from '../../../core/formats/chat-completions/whole/fold.ts';
import { fixturesOf, requestOf } from '../../support/fixtures.ts';
import { checkLegal } from '../../support/legal-chat-completions.ts';
import {
  codec,
  context,
  decodeSse,
  encodeEvents,
  encodeWhole,
  fixture,
  target,
  wireFrames,
  type JsonObject,
  type WireFrame,
} from './support.ts';

const name = 'chat-completions';

function fold(frames: readonly WireFrame[]): JsonObject {
  const folded = new ChatFold();
  for (const frame of frames) folded.frame(frame);
  return folded.end();
}

describe('a request to a channel of the same format', () => {
  it.each(fixturesOf(name, 'requests', '.json'))('comes back as it was: $name', (file) => {
    const { params, body } = requestOf(file);
    codec.validate(body, params);
    const request = codec.decodeRequest(body, params);
    const to = target({ model: request.model, stream: request.stream });
    expect(codec.encodeRequest(request, to).body).toEqual(body);
    expect(to.losses).toEqual([]);
  });

  it('comes back as it was: the golden request, with content null', () => {
    const body = JSON.parse(fixture('tolerated/golden-13-1.json')) as JsonObject;
    expect(codec.encodeRequest(codec.decodeRequest(body, {}), target()).body).toEqual(body);
  });

  it.each(fixturesOf(name, 'requests', '.json'))('says where every piece stood: $name', (file) => {
    const request = codec.decodeRequest(requestOf(file).body, {});
    const messages = [...request.system, ...request.messages];
    const blocks = messages.flatMap((message) => message.content);
    expect(messages.filter(({ at }) => !/^messages\[\d+\]$/.test(at ?? ''))).toEqual([]);
    expect(blocks.filter(({ at }) => !/^messages\[\d+\]/.test(at ?? ''))).toEqual([]);
    expect(request.tools.filter(({ at }) => !/^(tools\[\d+\]|web_search_options)$/.test(at ?? ''))).toEqual(
      [],
    );
  });

  it('keeps a client field that looks like a mark of ours', () => {
    const body = {
      model: 'm',
      $role: 'x',
      $stop: 'string',
      messages: [{ role: 'user', content: 'Hi', $part: 1 }],
    };
    expect(codec.encodeRequest(codec.decodeRequest(body, {}), target()).body).toEqual(body);
  });
});

describe('a whole reply', () => {
  it.each(fixturesOf(name, 'replies', '.json'))('comes back as it was: $name', (file) => {
    const body = JSON.parse(file.text) as JsonObject;
    const to = context({ body: {} });
    expect(encodeWhole(codec.decodeWhole(body, {}), to)).toEqual(body);
    expect(to.losses).toEqual([]);
  });
});

describe('a stream', () => {
  const streams = fixturesOf(name, 'streams', '.sse');

  it.each(streams.filter((file) => file.name !== 'audio'))('comes back frame by frame: $name', (file) => {
    const to = context();
    expect(encodeEvents(decodeSse(file.text), to)).toEqual(wireFrames(file.text));
    expect(to.losses).toEqual([]);
  });

  it.each(streams)('folds into the same reply, and is legal: $name', (file) => {
    const frames = encodeEvents(decodeSse(file.text));
    expect(checkLegal(frames)).toEqual([]);
    expect(fold(frames)).toEqual(fold(wireFrames(file.text)));
  });

  it.each(streams.filter((file) => hasEvents(file.name)))('means the golden events: $name', (file) => {
    const golden: unknown = JSON.parse(fixture(`streams/${file.name}.events.json`));
    expect(decodeSse(file.text)).toEqual(golden);
  });

  it.each(streams)('tells the same as the whole reply folded from it: $name', (file) => {
    const whole = fold(wireFrames(file.text));
    expect(encodeWhole(codec.decodeWhole(whole, {}))).toEqual(whole);
  });
});

function hasEvents(stream: string): boolean {
  try {
    fixture(`streams/${stream}.events.json`);
    return true;
  } catch {
    return false;
  }
}

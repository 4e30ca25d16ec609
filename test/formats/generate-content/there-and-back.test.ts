/*
 * Law 1: what a client of this format writes reaches a provider of this format unchanged, and the reply comes back unchanged.
 *
 * Accepted differences:
 * - an explicit `null` in a field that the gateway reads is the same as its absence;
 * - field names in snake_case are emitted in camelCase, where the gateway knows the field;
 * - `contents` or `parts` as a single object become lists; a `systemInstruction` string becomes a content with one part;
 * - a content with role `system` becomes an instruction (leading) or a wrapped user text (later);
 * - URL-safe base64 becomes standard base64, numbers written as strings become numbers, `_responseJsonSchema` loses its underscore;
 * - a result without a name gets that of its call;
 * - a signature that the gateway itself sealed for another vendor is never sent.
 */
import { describe, expect, test } from 'vitest';
import { parseSse } from '../../../core/formats/_shared/sse.ts';
import {
  chat,
  chunks,
  context,
  decodeSse,
  encode,
  encodeWhole,
  names,
  readJson,
  readRequest,
  readStream,
  target,
} from './support.ts';

describe('a request there and back', () => {
  test.each(names('requests', '.json'))('%s keeps every field', (name) => {
    const { params, body } = readRequest(name);
    const goal = target();
    const request = chat.decodeRequest(body, params);
    const encoded = chat.encodeRequest(request, goal);
    expect(JSON.parse(JSON.stringify(encoded.body))).toEqual(body);
    expect(goal.losses).toEqual([]);
    expect(encoded.toolNames).toBeUndefined();
  });

  test.each(names('requests', '.json'))('%s says where each piece stood', (name) => {
    const { params, body } = readRequest(name);
    const request = chat.decodeRequest(body, params);
    for (const message of [...request.system, ...request.messages]) {
      expect(message.at).toBeTruthy();
      for (const block of message.content) expect(block.at).toBeTruthy();
    }
    for (const tool of request.tools) expect(tool.at).toBeTruthy();
  });
});

describe('a whole reply there and back', () => {
  test.each(names('replies', '.json'))('%s keeps every field', (name) => {
    const reply = readJson('replies', name);
    const goal = context();
    expect(JSON.parse(JSON.stringify(encodeWhole(chat.decodeWhole(reply, {}), goal)))).toEqual(reply);
    expect(goal.losses).toEqual([]);
  });

  test.each(names('replies', '.json'))('%s as a stream of one chunk is the same chunk', (name) => {
    const reply = readJson('replies', name);
    expect(chunks(encode(chat.decodeWhole(reply, {})))).toEqual([reply]);
  });
});

/** Arguments that come in pieces are put together: the call goes on whole. */
const assembled = 'streamed-arguments';

describe('a stream there and back', () => {
  test.each(names('streams', '.sse').filter((name) => name !== assembled))(
    '%s gives the same chunks',
    (name) => {
      const text = readStream(name);
      const goal = context();
      const sent = parseSse(text).map(({ data }) => JSON.parse(data) as unknown);
      expect(chunks(encode(decodeSse(text), goal))).toEqual(sent);
      expect(goal.losses).toEqual([]);
    },
  );
});

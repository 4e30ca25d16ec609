import { expect, test } from 'vitest';
import type { EncodeTarget } from '../../core/sdk/format.ts';
import { chatCodecOf } from '../linear/codecs.ts';
import { chatFormats, requestShapes } from '../linear/requests.ts';
import images from '../../core/formats/images/index.ts';

/** More than a function takes as arguments. */
const many = 150_000;

const target: EncodeTarget = {
  model: 'm',
  stream: false,
  traits: {},
  headers: {},
  unsupported: 'drop',
  drop: () => {},
};

test.each(['many parts', 'many messages of one role'])(
  'a conversation of %s reaches a channel of every format, however many there are',
  (name) => {
    const shape = requestShapes.find((one) => one.name === name);
    const source = chatCodecOf('chat-completions');
    const request = source.validate(shape?.make('chat-completions', many) ?? {}, {});
    for (const format of chatFormats) {
      const { body } = chatCodecOf(format).encodeRequest(request, target);
      expect({ format, count: JSON.stringify(body).split('hello').length - 1 }).toEqual({
        format,
        count: many + 1,
      });
    }
  },
);

test('a reply of very many images reaches the client', () => {
  const codec = images.codecs['generate-image'];
  if (codec === undefined) throw new Error('Images are generated.');
  const data = Array.from({ length: many }, () => ({ b64_json: 'iVBORw0KGgo=' }));
  const encoder = codec.encodeWhole({
    model: 'm',
    body: {},
    requestId: 'r',
    created: 1,
    inputEstimate: 1,
    drop: () => {},
  });
  for (const event of codec.decodeWhole({ created: 1, data }, {})) encoder.event(event);
  expect(encoder.end()['data']).toHaveLength(many);
});

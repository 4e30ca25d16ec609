import { expect, test } from 'vitest';
import type { Codec, EncodeTarget } from '../../../core/sdk/format.ts';
import type { ChatRequest } from '../../../core/model/chat.ts';
import { allFormats } from '../../support/fixtures.ts';

const codecs = new Map((await allFormats()).map(({ name, codecs: { chat } }) => [name, chat]));

function codecOf(format: string): Codec<ChatRequest> {
  const codec = codecs.get(format);
  if (codec === undefined) throw new Error(`no format ${format}`);
  return codec;
}

const odd = { $secret: 1, 'top.level': 2, 'list[0]': 3 };
const formats = ['chat-completions', 'messages', 'generate-content', 'responses', 'converse'];
const bodies = {
  'chat-completions': { model: 'm', messages: [{ role: 'user', content: 'Hi' }], ...odd },
  messages: { model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }], ...odd },
  'generate-content': { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }], ...odd },
  responses: { model: 'm', input: 'Hi', ...odd },
  converse: { messages: [{ role: 'user', content: [{ text: 'Hi' }] }], ...odd },
} as const;

function sent(from: keyof typeof bodies, to: string): { readonly body: object; readonly losses: string[] } {
  const losses: string[] = [];
  const drop = (path: string): number => losses.push(path);
  const target: EncodeTarget = {
    model: 'm',
    stream: false,
    traits: {},
    headers: {},
    unsupported: 'refuse',
    drop,
  };
  const request = codecOf(from).decodeRequest(bodies[from], { model: 'm' });
  return { body: codecOf(to).encodeRequest(request, target).body, losses };
}

test.each(formats)('fields of odd names reach a provider of the same format: %s', (format) => {
  const { body, losses } = sent(format as keyof typeof bodies, format);
  expect(body).toMatchObject(odd);
  expect(losses).toEqual([]);
});

test.each(formats.flatMap((from) => formats.filter((to) => to !== from).map((to) => [from, to] as const)))(
  'fields of odd names that a %s client sends to a %s provider are told as lost',
  (from, to) => {
    expect(sent(from as keyof typeof bodies, to).losses).toEqual(expect.arrayContaining(Object.keys(odd)));
  },
);

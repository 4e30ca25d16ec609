/** Trials of a chat model through a channel: text, streams, usage, limits, structured output, reasoning, media, caching and errors. */
import type { JsonObject, JsonValue } from '../model/json.ts';
import { pageWith, redSquare } from './media.ts';
import { at, countAt, Differs, holds, Refused, type Answer, type Asking, type Trial } from './trial.ts';

/** Path of all chats. One format suffices, because the gateway translates all formats alike. */
export const chats = '/v1/chat/completions';

/** Room for an answer, and for what a model may think before. */
const room = 2000;

/** Returns a trial of chats. Default: one request of a usual number of tokens. */
function trial(
  name: string,
  run: (asking: Asking) => Promise<void>,
  cost: Partial<Pick<Trial, 'requests' | 'input' | 'output' | 'lack'>> = {},
): Trial {
  return { name, operation: 'chat', requests: 1, input: 100, output: room, ...cost, run };
}

function chat(asking: Asking, content: JsonValue, more: JsonObject = {}): Promise<Answer> {
  return asking.request(chats, bodyOf(asking, content, more));
}

function bodyOf({ model }: Asking, content: JsonValue, more: JsonObject = {}): JsonObject {
  return { model, max_tokens: room, messages: [{ role: 'user', content }], ...more };
}

function textOf(answer: Answer): string {
  return String(at(answer.json, 'choices', 0, 'message', 'content') ?? '');
}

function says(text: string, word: string): void {
  holds(text.toLowerCase().includes(word), `it was to say "${word}", and said: ${text.slice(0, 80)}`);
}

/** Some 3,000 tokens that are the same each time: more than the least that providers keep. */
const long = Array.from(
  { length: 300 },
  (_, index) => `Rule ${index}: the lamp with the number ${index} is switched off at night.`,
).join('\n');

/** Trials for every chat model. */
export const chatTrials: readonly Trial[] = [
  trial('text', async (asking) => {
    const answer = await chat(asking, 'Say the word "apple" and nothing else.');
    says(textOf(answer), 'apple');
    const reason = at(answer.json, 'choices', 0, 'finish_reason');
    holds(reason === 'stop', `the answer ends with ${String(reason)}`);
  }),
  trial('usage', async (asking) => {
    const { json } = await chat(asking, 'Say the word "apple" and nothing else.');
    holds(countAt(json, 'usage', 'prompt_tokens') > 0, 'no tokens of the request are told');
    holds(countAt(json, 'usage', 'completion_tokens') > 0, 'no tokens of the answer are told');
  }),
  trial('system message', async (asking) => {
    const messages = [
      { role: 'system', content: 'Whatever you are asked, answer with the word "pear" alone.' },
      { role: 'user', content: 'What is your name?' },
    ];
    says(textOf(await chat(asking, '', { messages })), 'pear');
  }),
  trial('history', async (asking) => {
    const messages = [
      { role: 'user', content: 'My cat is called Minka.' },
      { role: 'assistant', content: 'A lovely name.' },
      { role: 'user', content: 'What is my cat called?' },
    ];
    says(textOf(await chat(asking, '', { messages })), 'minka');
  }),
  trial(
    'stream',
    async (asking) => {
      const answer = await chat(asking, 'Count from one to ten in words.', { stream: true });
      const pieces = answer.frames
        .map((frame) => at(frame, 'choices', 0, 'delta', 'content'))
        .filter((piece) => typeof piece === 'string' && piece !== '');
      says(pieces.join(''), 'seven');
      holds(answer.isDone, 'the stream ends without a last word');
      holds(pieces.length > 1, 'the whole answer comes in one piece');
    },
    { lack: 'streams' },
  ),
  trial(
    'usage of a stream',
    async (asking) => {
      const { frames } = await chat(asking, 'Say the word "apple" and nothing else.', {
        stream: true,
        stream_options: { include_usage: true },
      });
      holds(
        frames.some((frame) => countAt(frame, 'usage', 'completion_tokens') > 0),
        'no tokens are told',
      );
    },
    { lack: 'streams' },
  ),
  trial(
    'limit of the output',
    async (asking) => {
      const { json } = await chat(asking, 'Count from one to one hundred in words.', { max_tokens: 16 });
      const used = countAt(json, 'usage', 'completion_tokens');
      holds(used <= 16, `${used} tokens where 16 were the most`);
      const reason = at(json, 'choices', 0, 'finish_reason');
      holds(reason === 'length', `the answer ends with ${String(reason)}`);
    },
    { lack: 'limits', output: 16 },
  ),
  trial('stop sequence', async (asking) => {
    const text = textOf(
      await chat(asking, 'Write the letters A to F with blanks between: A B C D E F', { stop: ['D'] }),
    );
    holds(!text.includes('D'), `it went on: ${text.slice(0, 80)}`);
  }),
  trial(
    'structured output',
    async (asking) => {
      const schema = {
        type: 'object',
        properties: { city: { type: 'string' }, people: { type: 'integer' } },
        required: ['city', 'people'],
        additionalProperties: false,
      };
      const text = textOf(
        await chat(asking, 'Which city is the capital of Norway, and how many people live there?', {
          response_format: { type: 'json_schema', json_schema: { name: 'capital', schema, strict: true } },
        }),
      );
      let found: JsonValue;
      try {
        found = JSON.parse(text) as JsonValue;
      } catch {
        throw new Differs(`the answer is no JSON: ${text.slice(0, 80)}`);
      }
      holds(
        typeof at(found, 'city') === 'string' && Number.isInteger(at(found, 'people')),
        `the answer does not keep the schema: ${text.slice(0, 80)}`,
      );
    },
    { lack: 'structured output' },
  ),
  trial(
    'reasoning',
    async (asking) => {
      const { json } = await chat(asking, 'Is 391 a prime number? Answer with yes or no.', {
        reasoning_effort: 'low',
      });
      const thought = at(json, 'choices', 0, 'message', 'reasoning_content');
      const counted = countAt(json, 'usage', 'completion_tokens_details', 'reasoning_tokens');
      holds(Boolean(thought) || counted > 0, 'nothing tells of any reasoning');
    },
    { lack: 'reasoning' },
  ),
  trial(
    'image',
    async (asking) => {
      const url = `data:image/png;base64,${redSquare().toString('base64')}`;
      const content = [
        { type: 'text', text: 'Which colour is this? Answer with one word.' },
        { type: 'image_url', image_url: { url } },
      ];
      says(textOf(await chat(asking, content)), 'red');
    },
    { lack: 'images', input: 1500 },
  ),
  trial(
    'document',
    async (asking) => {
      const data = pageWith('The secret word is marmalade').toString('base64');
      const file = { filename: 'page.pdf', file_data: `data:application/pdf;base64,${data}` };
      const content = [
        { type: 'text', text: 'What is the secret word? Answer with one word.' },
        { type: 'file', file },
      ];
      says(textOf(await chat(asking, content)), 'marmalade');
    },
    { lack: 'documents', input: 3000 },
  ),
  trial(
    'prompt cache',
    async (asking) => {
      // For providers that cache a prompt only on request, which only these formats support.
      const marked = asking.format === 'messages' || asking.format === 'converse';
      const rules = {
        type: 'text',
        text: long,
        ...(marked ? { cache_control: { type: 'ephemeral' } } : {}),
      };
      const messages = [
        { role: 'system', content: [rules] },
        { role: 'user', content: 'Which lamp is switched off first? Answer with a number.' },
      ];
      await chat(asking, '', { messages });
      const { json } = await chat(asking, '', { messages });
      holds(
        countAt(json, 'usage', 'prompt_tokens_details', 'cached_tokens') > 0,
        'the same prompt again was not read from a cache',
      );
    },
    { lack: 'prompt cache', requests: 2, input: 12_000, output: 2 * room },
  ),
  trial(
    'a client that leaves',
    async (asking) => {
      const body = bodyOf(asking, 'Count from one to two hundred in words.', { stream: true });
      const answer = await asking.look(chats, body);
      if (answer.status !== 200) throw new Refused(`status ${answer.status}`);
      const reader = answer.body?.getReader();
      await reader?.read();
      await reader?.cancel();
    },
    { lack: 'streams' },
  ),
  trial(
    'a model that there is not',
    async (asking) => {
      const answer = await asking.look(chats, { ...bodyOf(asking, 'Hello'), model: asking.stranger });
      await answer.text();
      holds([400, 404, 503].includes(answer.status), `status ${answer.status}`);
    },
    { output: 0 },
  ),
  trial(
    'a wrong request',
    async (asking) => {
      const answer = await asking.look(chats, bodyOf(asking, 'Hello', { temperature: 99 }));
      await answer.text();
      holds(answer.status === 400, `status ${answer.status} for a temperature of 99, where 400 is due`);
    },
    { output: 0 },
  ),
];

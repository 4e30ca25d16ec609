import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import perplexity from '../../channels/perplexity.ts';
import { Provider, sse } from './_provider.ts';

let provider: Provider;

beforeAll(async () => {
  provider = await Provider.start((url) => ({ channels: [perplexity({ key: 'k', baseUrl: url })] }));
});
afterAll(() => provider.close());

const sources = {
  citations: ['https://a.example/cats', 'https://b.example/dogs'],
  search_results: [
    { title: 'Cats', url: 'https://a.example/cats', date: '2025-01-01' },
    { title: 'Dogs', url: 'https://b.example/dogs' },
  ],
};
const base = { id: 'x', model: 'sonar', created: 1, ...sources };
const usage = { prompt_tokens: 3, completion_tokens: 9, total_tokens: 12, num_search_queries: 1 };
const text = 'Dogs bark [2], cats purr [1] [2].';
const whole = {
  ...base,
  object: 'chat.completion',
  usage,
  choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }],
};
/** As Perplexity streams: each piece has the sources, and the message so far. */
const pieces = ['Dogs bark [', '2], cats purr', ' [1] [2].', ''].map((content, place, all) => ({
  ...base,
  object: 'chat.completion.chunk',
  usage,
  choices: [
    {
      index: 0,
      delta: { role: 'assistant', content },
      message: { role: 'assistant', content: all.slice(0, place + 1).join('') },
      finish_reason: content === '' ? 'stop' : null,
    },
  ],
}));

describe.each([false, true])('streamed: %s', (stream) => {
  beforeEach(() => {
    provider.says(() => (stream ? sse(pieces, 'data: [DONE]\n\n') : { body: whole }));
  });
  const user = [{ role: 'user', content: 'Well?' }];

  test('a client of chat completions has all that Perplexity says and takes', async () => {
    const asked = {
      model: 'sonar',
      messages: user,
      search_domain_filter: ['-c.example'],
      search_recency_filter: 'week',
      search_mode: 'academic',
      return_images: true,
      web_search_options: { search_context_size: 'low' },
    };
    const answer = await provider.ask('/v1/chat/completions', { ...asked, stream });
    const said = await answer.text();
    expect(provider.posted()).toMatchObject(asked);
    if (!stream) expect(JSON.parse(said)).toEqual(whole);
    else {
      expect(said).toContain('"search_results":[{"title":"Cats"');
      expect(said).not.toContain('url_citation');
    }
  });

  test('a client of messages has its sources as citations', async () => {
    const answer = await provider.ask('/v1/messages', {
      model: 'sonar',
      max_tokens: 99,
      messages: user,
      stream,
    });
    const said = await answer.text();
    const cites = [...said.matchAll(/"url":"([^"]*)","title":"([^"]*)"/g)].map(([, url, title]) => [
      url,
      title,
    ]);
    expect(cites).toEqual([
      ['https://a.example/cats', 'Cats'],
      ['https://b.example/dogs', 'Dogs'],
    ]);
  });

  test('a client of responses has them as annotations, where the text names them first', async () => {
    const answer = await provider.ask('/v1/responses', { model: 'sonar', input: 'Well?', stream });
    const said = await answer.text();
    const end = stream ? /data: (.*"response\.completed".*)/.exec(said)?.[1] : said;
    const parsed = JSON.parse(end ?? '{}') as { response?: object };
    const annotation = (url: string, title: string, from: number): object => ({
      type: 'url_citation',
      url,
      title,
      start_index: from,
      end_index: from + 3,
    });
    expect(parsed.response ?? parsed).toMatchObject({
      output: [
        {
          content: [
            {
              text,
              annotations: [
                annotation('https://a.example/cats', 'Cats', text.indexOf('[1]')),
                annotation('https://b.example/dogs', 'Dogs', text.indexOf('[2]')),
              ],
            },
          ],
        },
      ],
    });
  });

  test('a client of generateContent has them as grounding', async () => {
    const verb = stream ? 'streamGenerateContent?alt=sse' : 'generateContent';
    const contents = [{ role: 'user', parts: [{ text: 'Well?' }] }];
    const said = await (await provider.ask(`/v1beta/models/sonar:${verb}`, { contents })).text();
    expect(said).toContain('"web":{"uri":"https://a.example/cats","title":"Cats"}');
    expect(said).toContain('"web":{"uri":"https://b.example/dogs","title":"Dogs"}');
  });
});

test('an answer of old, with addresses alone, and one without a search', async () => {
  const ask = async (): Promise<string> =>
    (
      await provider.ask('/v1/messages', {
        model: 'sonar',
        max_tokens: 99,
        messages: [{ role: 'user', content: 'Hi' }],
      })
    ).text();
  const { search_results: _, ...old } = whole;
  provider.says(() => ({ body: old }));
  expect(await ask()).toContain('"url":"https://b.example/dogs"');
  provider.says(() => ({ body: { ...old, citations: null } }));
  const said = await ask();
  expect(said).toContain(text);
  expect(said).not.toContain('citations');
});

import { expect, test } from 'vitest';
import bedrock from '../../../channels/bedrock/index.ts';
import githubModels from '../../../channels/github-models.ts';
import replicate from '../../../channels/replicate/index.ts';
import { channelOf } from './_channels.ts';

const at = (endpoint: 'runtime' | 'mantle') =>
  channelOf(bedrock({ key: 'k', region: 'us-east-1', endpoint, models: ['openai.*', 'qwen.*'] })).channel;

test('Mantle has prices of its own: the runtime serves a model of that name at others', () => {
  expect(at('mantle')?.priceOf?.('openai.gpt-6-sol')?.row).toMatchObject({ input: 2.2, output: 11 });
  expect(at('runtime')?.priceOf?.('openai.gpt-6-sol')?.row).toMatchObject({ input: 2, output: 10 });
  expect(at('mantle')?.priceOf?.('openai.gpt-oss-120b')?.row).toMatchObject({ input: 0.15, output: 0.6 });
  expect(at('runtime')?.priceOf?.('openai.gpt-oss-120b')).toBeUndefined();
});

test('a variant of GPT-5.6 at Mantle answers in Responses alone, and thinks as GPT-5.6 does', () => {
  expect(at('mantle')?.traits('openai.gpt-daybreak-blue-5.6-sol')).toMatchObject({
    formats: ['responses'],
    reasoning: 'effort',
  });
});

test('GitHub Models has the prices that GitHub lists', () => {
  const { channel } = channelOf(githubModels({ key: 'k' }));
  expect(channel?.priceOf?.('openai/gpt-4.1')?.row).toMatchObject({ input: 2, cacheRead: 0.5, output: 8 });
  expect(channel?.priceOf?.('openai/gpt-unknown')).toBeUndefined();
});

test('Replicate charges official models by the image; others, by hardware and time, have no price', () => {
  const { channel } = channelOf(replicate({ key: 'k' }));
  expect(channel?.priceOf?.('black-forest-labs/flux-schnell')?.row).toMatchObject({ perImage: 0.003 });
  expect(channel?.priceOf?.('someone/sdxl-of-mine')).toBeUndefined();
});

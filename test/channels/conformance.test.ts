/* oxlint-disable vitest/expect-expect, vitest/valid-title -- the cases name themselves, and throw what is wrong. */
import { channelCases, type ChannelUnderTest } from 'sluice/testing';
import { describe, test } from 'vitest';
import anthropicCompatible from '../../channels/anthropic-compatible.ts';
import geminiCompatible from '../../channels/gemini-compatible.ts';
import groq from '../../channels/groq.ts';
import mistral from '../../channels/mistral.ts';
import openaiCompatible from '../../channels/openai-compatible.ts';

const models = ['test-model'];
const kinds: Readonly<Record<string, ChannelUnderTest>> = {
  'openai-compatible': {
    channel: ({ url, key }) => openaiCompatible({ name: 'mine', baseUrl: `${url}/v1`, key, models }),
  },
  'openai-compatible with responses': {
    channel: ({ url, key }) =>
      openaiCompatible({
        name: 'mine',
        baseUrl: `${url}/v1`,
        key,
        models,
        speaks: { chat: ['responses'] },
      }),
    format: 'responses',
  },
  'anthropic-compatible': {
    channel: ({ url, key }) => anthropicCompatible({ name: 'mine', baseUrl: `${url}/v1`, key, models }),
    format: 'messages',
  },
  'gemini-compatible': {
    channel: ({ url, key }) => geminiCompatible({ name: 'mine', baseUrl: `${url}/v1beta`, key, models }),
    format: 'generate-content',
  },
  groq: { channel: ({ url, key }) => groq({ baseUrl: `${url}/v1`, key, models }) },
  mistral: { channel: ({ url, key }) => mistral({ baseUrl: `${url}/v1`, key, models }) },
};

describe.each(Object.entries(kinds))('%s', (_name, kind) => {
  for (const { name, run } of channelCases(kind)) test(name, run);
});

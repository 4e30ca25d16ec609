import { describe, expect, test } from 'vitest';
import anthropic from '../../channels/anthropic.ts';
import azureOpenai from '../../channels/azure-openai.ts';
import deepseek from '../../channels/deepseek.ts';
import gemini from '../../channels/gemini.ts';
import groq from '../../channels/groq.ts';
import mistral from '../../channels/mistral/index.ts';
import ollama from '../../channels/ollama/index.ts';
import openai from '../../channels/openai.ts';
import openrouter from '../../channels/openrouter.ts';
import { KnownModels } from '../../core/models/catalogue.ts';
import { modelProfile } from '../../core/models/profile.ts';
import type { Target } from '../../core/sdk/call.ts';
import type { UpstreamRequest } from '../../core/sdk/channel.ts';
import type { ChannelKind } from '../../core/sdk/define.ts';
import type { HttpRequest } from '../../core/sdk/http.ts';
import { testCall } from '../support/call.ts';

/** Expectations for a single channel kind; conformance.test.ts has those that all kinds share. */
interface Facts {
  readonly kind: Pick<ChannelKind, 'spec'>;
  /** The format of the request below. */
  readonly format: string;
  /** A path as the format's codec writes it, and where that is below the base URL. */
  readonly path: string;
  readonly url: string;
  readonly query?: Readonly<Record<string, string>>;
  /** The headers that carry the key `KEY`. */
  readonly credentials: Readonly<Record<string, string>>;
  /** Other headers that the provider must see. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The kind's base URL when the config gives none. */
  readonly baseUrl: string;
  /** Public model names that the kind serves unasked, and what their traits must say. */
  readonly models: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly options?: Readonly<Record<string, unknown>>;
}

const thinks = {
  reasoning: 'effort',
  systemRole: 'developer',
  refuses: expect.arrayContaining(['temperature', 'topP', 'topK', 'logprobs']),
};
const refuses = ['temperature', 'topP', 'topK'];

const kinds: Readonly<Record<string, Facts>> = {
  anthropic: {
    kind: anthropic,
    format: 'messages',
    path: '/messages',
    url: '/messages',
    credentials: { 'x-api-key': 'KEY' },
    headers: { 'anthropic-version': '2023-06-01' },
    baseUrl: 'https://api.anthropic.com/v1',
    models: {
      'claude-3-5-haiku-20241022': { reasoning: 'none', outputLimit: 8192 },
      'claude-opus-4-1-20250805': { reasoning: 'budget', outputLimit: 32_000 },
      'claude-sonnet-4-5': { reasoning: 'budget', outputLimit: 64_000, jsonSchema: true },
      'claude-sonnet-4-6': {
        reasoning: 'adaptive',
        efforts: ['none', 'low', 'medium', 'high', 'max'],
        midSystem: false,
      },
      'claude-opus-4-7': { reasoning: 'adaptive', refuses },
      'claude-fable-5-1': {
        reasoning: 'adaptive',
        refuses,
        efforts: ['low', 'medium', 'high', 'xhigh', 'max'],
      },
      'claude-newname': { reasoning: 'adaptive', refuses },
    },
  },
  'azure-openai': {
    kind: azureOpenai,
    format: 'chat-completions',
    path: '/chat/completions',
    url: '/openai/v1/chat/completions',
    credentials: { 'api-key': 'KEY' },
    baseUrl: 'https://mine.openai.azure.com',
    options: { resource: 'mine' },
    models: {},
  },
  deepseek: {
    kind: deepseek,
    format: 'chat-completions',
    path: '/chat/completions',
    url: '/chat/completions',
    credentials: { authorization: 'Bearer KEY' },
    baseUrl: 'https://api.deepseek.com/v1',
    models: {
      'deepseek-v4-pro': { reasoning: 'thinking', replaysReasoning: true, outputLimitField: 'max_tokens' },
    },
  },
  gemini: {
    kind: gemini,
    format: 'generate-content',
    path: '/models/m:streamGenerateContent',
    query: { alt: 'sse' },
    url: '/models/m:streamGenerateContent?alt=sse',
    credentials: { 'x-goog-api-key': 'KEY' },
    baseUrl: 'https://generativelanguage.googleapis.com/v1beta',
    models: {
      'gemini-2.5-pro': { reasoning: 'budget', efforts: ['minimal', 'low', 'medium', 'high', 'xhigh'] },
      'gemini-2.5-flash': { reasoning: 'budget', efforts: ['none', 'minimal', 'low', 'medium', 'high'] },
      'gemini-3-pro-preview': { reasoning: 'level', efforts: ['low', 'high'] },
      'gemini-3.1-pro-preview': { reasoning: 'level', efforts: ['low', 'medium', 'high'] },
      'gemini-3.5-flash': { reasoning: 'level', efforts: ['minimal', 'low', 'medium', 'high'] },
    },
  },
  groq: {
    kind: groq,
    format: 'chat-completions',
    path: '/chat/completions',
    url: '/chat/completions',
    credentials: { authorization: 'Bearer KEY' },
    baseUrl: 'https://api.groq.com/openai/v1',
    models: {
      'llama-3.3-70b-versatile': {
        reasoning: 'none',
        refuses: expect.arrayContaining(['logprobs', 'topLogprobs', 'choices', 'customTools']),
      },
      'openai/gpt-oss-120b': { reasoning: 'effort', efforts: ['low', 'medium', 'high'] },
    },
  },
  mistral: {
    kind: mistral,
    format: 'mistral-chat',
    path: '/chat/completions',
    url: '/chat/completions',
    credentials: { authorization: 'Bearer KEY' },
    baseUrl: 'https://api.mistral.ai/v1',
    models: { 'mistral-large-latest': { reasoning: 'none', outputLimitField: 'max_tokens' } },
  },
  ollama: {
    kind: ollama,
    format: 'chat-completions',
    path: '/chat/completions',
    url: '/chat/completions',
    credentials: { authorization: 'Bearer KEY' },
    baseUrl: 'http://localhost:11434/v1',
    models: {
      'llama3.2': { reasoning: 'none', outputLimitField: 'max_tokens', fetchesUrls: false },
      'qwen3:8b': { reasoning: 'effort' },
    },
  },
  openai: {
    kind: openai,
    format: 'chat-completions',
    path: '/chat/completions',
    url: '/chat/completions',
    credentials: { authorization: 'Bearer KEY' },
    baseUrl: 'https://api.openai.com/v1',
    models: {
      'gpt-4o-mini': { reasoning: 'none', refuses: ['topK', 'customTools'] },
      'gpt-4.1': { reasoning: 'none', outputLimit: 32_768 },
      'o4-mini': { ...thinks, efforts: ['low', 'medium', 'high'] },
      'gpt-5-mini-2025-08-07': { ...thinks, efforts: ['minimal', 'low', 'medium', 'high'] },
      'gpt-5.1': { ...thinks, efforts: ['none', 'low', 'medium', 'high'] },
      'gpt-5.4': { ...thinks, efforts: ['none', 'low', 'medium', 'high', 'xhigh'] },
      'gpt-5-chat-latest': {
        reasoning: 'none',
        refuses: ['topK'],
        formats: ['chat-completions', 'responses'],
      },
      'gpt-3.5-turbo-instruct-0914': { formats: ['text-completions'] },
      'babbage-002': { formats: ['text-completions'] },
      'gpt-3.5-turbo': { formats: ['chat-completions', 'responses'] },
      'o3-pro': { ...thinks, formats: ['responses'] },
      'gpt-5.2-pro': { ...thinks, formats: ['responses'] },
      'gpt-5.1-codex-max': { ...thinks, formats: ['responses'] },
      'o4-mini-deep-research': { ...thinks, formats: ['responses'] },
      'computer-use-preview': { formats: ['responses'] },
    },
  },
  openrouter: {
    kind: openrouter,
    format: 'chat-completions',
    path: '/chat/completions',
    url: '/chat/completions',
    credentials: { authorization: 'Bearer KEY' },
    baseUrl: 'https://openrouter.ai/api/v1',
    models: { 'anthropic/claude-opus-5': { reasoning: 'object', outputLimitField: 'max_tokens' } },
  },
};

const keys = ['test-key-0123456789abcdef', 'test-key-of-another-account'];

describe.each(Object.entries(kinds))('%s', (_name, facts) => {
  const {
    kind,
    format,
    path,
    url,
    query = {},
    credentials,
    headers = {},
    baseUrl,
    models,
    options = {},
  } = facts;
  const seen: HttpRequest[] = [];
  const http = {
    send: (_call: unknown, request: HttpRequest) => {
      seen.push(request);
      return Promise.reject(new Error('enough'));
    },
  };
  const parts = kind.spec.setup({ ...kind.spec.options?.parse(options), keys }, { http, keys } as never);
  const request: UpstreamRequest = {
    operation: 'chat',
    format,
    model: 'm',
    stream: true,
    path,
    query,
    headers: {},
    body: Buffer.from('{"model":"m"}'),
  };

  test('is asked at its own address, with the key that was chosen', async () => {
    expect(parts.speaks.chat).toContain(format);
    for (const index of [0, 1]) {
      const { call, exchange } = testCall();
      const target = { key: { id: String(index), index } } as Target;
      // oxlint-disable-next-line no-await-in-loop
      await parts.open(call.with({ target }), request).catch(() => {});
      exchange.end();
      const sent = seen.at(-1);
      expect(sent?.url).toBe(baseUrl + url);
      const shown = Object.entries(credentials).map(([name, text]) => [
        name,
        text.replace('KEY', keys[index] ?? ''),
      ]);
      expect(sent?.headers).toMatchObject({
        'content-type': 'application/json',
        accept: 'text/event-stream',
        'accept-encoding': 'identity',
        ...headers,
        ...Object.fromEntries(shown),
      });
      expect(sent?.headers['user-agent']).toMatch(/^sluice\/\d/);
      // The key stands nowhere else.
      const carriers = Object.entries(sent?.headers ?? {}).filter(([, value]) => value.includes('test-key'));
      expect(carriers.map(([name]) => name)).toEqual(Object.keys(credentials));
      expect(`${sent?.url}${String(sent?.body)}`).not.toContain('test-key');
    }
  });

  test('knows what its models can do', () => {
    const known = new KnownModels(kind.spec.catalogue ?? []);
    const profileOf = (name: string) =>
      modelProfile({
        kind: kind.spec.name,
        name,
        defaults: parts.traits?.(name) ?? {},
        thinking: parts.thinking,
        formats: parts.speaks.chat ?? [],
        known: known.find(name),
        date: known.date,
      });
    for (const [model, traits] of Object.entries(models)) {
      const served = kind.spec.models;
      const isServed = served === 'discover' || served?.some((pattern) => fits(pattern, model));
      expect({ model, isServed, traits: profileOf(model) }).toMatchObject({
        model,
        isServed: true,
        traits,
      });
    }
  });
});

function fits(pattern: string, model: string): boolean {
  const parts = pattern.split('*').map((part) => part.replaceAll(/[.+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('.*')}$`).test(model);
}

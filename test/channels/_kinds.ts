import { generateKeyPairSync } from 'node:crypto';
import type { ChannelUnderTest } from 'sluice/testing';
import anthropic from '../../channels/anthropic.ts';
import anthropicCompatible from '../../channels/anthropic-compatible.ts';
import azureOpenai from '../../channels/azure-openai.ts';
import bedrock from '../../channels/bedrock/index.ts';
import cohere from '../../channels/cohere/index.ts';
import deepseek from '../../channels/deepseek.ts';
import gemini from '../../channels/gemini.ts';
import geminiCompatible from '../../channels/gemini-compatible.ts';
import githubCopilot from '../../channels/github-copilot/index.ts';
import groq from '../../channels/groq.ts';
import mistral from '../../channels/mistral/index.ts';
import oci from '../../channels/oci/index.ts';
import ollama from '../../channels/ollama/index.ts';
import openai from '../../channels/openai.ts';
import openaiCompatible from '../../channels/openai-compatible.ts';
import openrouter from '../../channels/openrouter.ts';
import sagemaker from '../../channels/sagemaker/index.ts';
import sapAiCore from '../../channels/sap-ai-core/index.ts';
import watsonx from '../../channels/watsonx/index.ts';
import { ociCohereVoice, ociCommandAVoice, ociGenericVoice } from './_oci-voices.ts';
import { sagemakerVoice } from './_sagemaker.ts';
import { cohereVoice, mistralVoice, ollamaVoice, orchestrationVoice, watsonxVoice } from './_voices.ts';

const models = ['test-model'];

/** Oracle Cloud, where requests are signed. */
const onOracle = (model: string, options: Parameters<typeof oci>[0] = {}): ChannelUnderTest => ({
  channel: ({ url }) =>
    oci({
      ...options,
      baseUrl: `${url}/openai/v1`,
      compartment: 'ocid1.compartment.oc1..c',
      identity: {
        kind: 'key',
        tenancy: 'ocid1.tenancy.oc1..t',
        user: 'ocid1.user.oc1..u',
        fingerprint: '20:3b:97:13',
        key: signing,
      },
    }),
  model,
});
const signing = generateKeyPairSync('rsa', { modulusLength: 2048 })
  .privateKey.export({ type: 'pkcs8', format: 'pem' })
  .toString();

/** SAP AI Core with a deployment for each model, and one of the orchestration service. */
const onSap = (orchestration: boolean, tokens: string): ChannelUnderTest => ({
  channel: ({ url, key }) =>
    sapAiCore({
      orchestration,
      models: ['gpt-test'],
      serviceKey: { clientid: 'c', clientsecret: key, url: tokens, serviceurls: { AI_API_URL: url } },
    }),
  model: 'gpt-test',
  lists: (path) => {
    if (path.includes('scenarioId=orchestration')) return { resources: [{ id: 'd-all', details: {} }] };
    const deployed = ['gpt-test', 'sluice-no-such-model'].map((name) => ({
      id: `d-${name}`,
      details: { resources: { backendDetails: { model: { name } } } },
    }));
    return { resources: deployed };
  },
});

/** Statuses that InvokeModel and Converse have besides: the model took too long, failed, is not ready. */
const amazonsOwn = { 408: 502, 424: 502 };

/**
 * Channel kinds with code of their own, each with the model and the voice of its fake provider. `tokens` is the address of the service that
 * gives out access tokens.
 */
export const ownKinds = (tokens: string): Readonly<Record<string, ChannelUnderTest>> => ({
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
  openai: {
    channel: ({ url, key }) => openai({ baseUrl: `${url}/v1`, key }),
    model: 'gpt-5-mini',
  },
  anthropic: {
    channel: ({ url, key }) => anthropic({ baseUrl: `${url}/v1`, key }),
    model: 'claude-sonnet-4-5',
    format: 'messages',
  },
  gemini: {
    channel: ({ url, key }) => gemini({ baseUrl: `${url}/v1beta`, key }),
    model: 'gemini-2.5-flash',
    format: 'generate-content',
  },
  deepseek: { channel: ({ url, key }) => deepseek({ baseUrl: url, key }), model: 'deepseek-chat' },
  groq: { channel: ({ url, key }) => groq({ baseUrl: `${url}/v1`, key, models }) },
  ollama: { channel: ({ url, key }) => ollama({ baseUrl: `${url}/v1`, key, models }) },
  openrouter: { channel: ({ url, key }) => openrouter({ baseUrl: `${url}/v1`, key, models }) },
  'azure-openai': { channel: ({ url, key }) => azureOpenai({ baseUrl: url, key, models }) },
  bedrock: {
    channel: ({ url, key }) => bedrock({ region: 'us-east-1', baseUrl: url, key }),
    model: 'us.amazon.nova-2-lite-v1:0',
    format: 'converse',
    errors: amazonsOwn,
  },
  'bedrock with Claude': {
    channel: ({ url, key }) => bedrock({ region: 'us-east-1', baseUrl: url, key }),
    model: 'us.anthropic.claude-sonnet-4-5-20250929-v1:0',
    format: 'invoke',
    errors: amazonsOwn,
  },
  'bedrock in the words of OpenAI': {
    channel: ({ url, key }) => bedrock({ region: 'us-east-1', baseUrl: url, key }),
    model: 'us.xai.grok-4.6',
  },
  'bedrock with GPT': {
    channel: ({ url, key }) => bedrock({ region: 'us-east-1', baseUrl: url, key }),
    model: 'us.openai.gpt-6-sol',
    format: 'responses',
  },
  'bedrock at Mantle': {
    channel: ({ url, key }) => bedrock({ region: 'us-east-1', baseUrl: url, key, endpoint: 'mantle' }),
    model: 'openai.gpt-oss-120b',
  },
  mistral: {
    channel: ({ url, key }) => mistral({ baseUrl: `${url}/v1`, key }),
    model: 'mistral-small-latest',
    voice: mistralVoice,
  },
  oci: {
    channel: ({ url, key }) =>
      oci({ baseUrl: `${url}/openai/v1`, key, models: { 'test-model': 'openai.gpt-oss-120b' } }),
  },
  'oci in its own words': {
    ...onOracle('ocid1.generativeaiendpoint.oc1..e', { traits: { '*': { reasoning: 'effort' } } }),
    voice: ociGenericVoice,
  },
  'oci with Command A': {
    ...onOracle('ocid1.generativeaiendpoint.oc1..a', {
      endpoints: 'cohere-v2',
      traits: { '*': { reasoning: 'effort', efforts: ['none', 'medium'] } },
    }),
    voice: ociCommandAVoice,
    lacks: ['documents'],
  },
  'oci with Command R': {
    ...onOracle('cohere.command-r-08-2024'),
    voice: ociCohereVoice,
    lacks: ['reasoning', 'images', 'documents'],
  },
  'sap-ai-core': onSap(false, tokens),
  'sap-ai-core through its orchestration service': {
    ...onSap(true, tokens),
    voice: orchestrationVoice,
    lacks: ['reasoning', 'documents'],
  },
  watsonx: {
    channel: ({ url, key }) => watsonx({ baseUrl: url, key, models, project: 'p', tokenUrl: tokens }),
    voice: watsonxVoice,
    lacks: ['reasoning'],
  },
  cohere: {
    channel: ({ url, key }) => cohere({ baseUrl: url, key, models }),
    voice: cohereVoice,
    lacks: ['reasoning', 'documents', 'prompt cache'],
  },
  'ollama in its own words': {
    channel: ({ url, key }) =>
      ollama({ baseUrl: `${url}/v1`, key, native: true, models: ['qwen3:8b'], discover: false }),
    model: 'qwen3:8b',
    voice: ollamaVoice,
    lacks: ['documents', 'prompt cache'],
  },
  sagemaker: {
    channel: ({ url, key }) => sagemaker({ region: 'us-east-1', baseUrl: url, key: `AKID|${key}`, models }),
    voice: sagemakerVoice,
    lacks: ['reasoning'],
    errors: amazonsOwn,
  },
  'github-copilot': {
    // Its `gpt-4o` writes 4,096 tokens at most: clients here ask for more.
    channel: ({ url, key }) =>
      githubCopilot({ baseUrl: url, key, tokenUrl: tokens, models: ['gpt-4o-2024-11-20'] }),
    model: 'gpt-4o-2024-11-20',
    lacks: ['reasoning'],
  },
  'github-copilot with GPT': {
    channel: ({ url, key }) =>
      githubCopilot({ baseUrl: url, key, tokenUrl: tokens, models: ['gpt-5.6-sol'] }),
    model: 'gpt-5.6-sol',
    format: 'responses',
  },
});

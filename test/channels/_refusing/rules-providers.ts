import {
  has,
  isJson,
  isOneOf,
  lacks,
  objects,
  otherThan,
  outside,
  roleOtherThan,
  unless,
  type Check,
} from './checks.ts';
import type { Rule } from './table.ts';

const moreThanOne: Check = ({ body: { n } }) => (typeof n === 'number' && n > 1 ? 'n' : undefined);

const hasJsonSchema = isOneOf('response_format.type', ['json_schema']);

const toolContent: Check = ({ body }) => {
  const index = objects(body['messages']).findIndex(
    ({ role, content }) =>
      role === 'tool' &&
      Array.isArray(content) &&
      content.some((part) => isJson(part) && part['type'] !== 'text'),
  );
  return index < 0 ? undefined : `messages[${index}].content`;
};

/** An item of the input of Responses without a type. */
const untypedItem: Check = ({ body }) => {
  const index = objects(body['input']).findIndex(({ type }) => typeof type !== 'string');
  return index < 0 ? undefined : `input[${index}].type`;
};

/** A part of a message in the input of Responses of another type. */
const partOtherThan =
  (...types: readonly string[]): Check =>
  ({ body }) => {
    const index = objects(body['input']).findIndex(({ type, content }) =>
      type === 'message' ? objects(content).some((part) => !types.includes(String(part['type']))) : false,
    );
    return index < 0 ? undefined : `input[${index}].content`;
  };

/** None of these members is given. */
const neither =
  (...names: readonly string[]): Check =>
  ({ body }) =>
    names.every((name) => body[name] === undefined) ? names[0] : undefined;

/** Providers that serve models of their own, or anybody's. */
export const providerRules: readonly Rule[] = [
  {
    kinds: ['deepseek'],
    refuses: roleOtherThan('system', 'user', 'assistant', 'tool', 'latest_reminder'),
    says: 'Failed to deserialize the JSON body into the target type: $: unknown variant `developer`, expected one of `system`, `user`, `assistant`, `tool`',
    source: 'github:earendil-works/pi#1048; github:decolua/9router#773',
  },
  {
    kinds: ['deepseek'],
    refuses: hasJsonSchema,
    says: 'This response_format type is unavailable now',
    source:
      'https://api-docs.deepseek.com/guides/json_mode; @ai-sdk/deepseek 2.0.69, supportsStructuredOutputs',
  },
  {
    kinds: ['dashscope'],
    refuses: roleOtherThan('system', 'user', 'assistant', 'tool', 'function'),
    says: "developer is not one of ['system', 'assistant', 'user', 'tool', 'function'] - '$'",
    source: 'https://www.alibabacloud.com/help/en/model-studio/error-code',
  },
  {
    kinds: ['xai'],
    models: ['grok-4*', 'grok-3-mini*', '!grok-4*non-reasoning*'],
    refuses: has('presence_penalty', 'frequency_penalty', 'stop'),
    says: 'Model does not support parameter $.',
    source: 'github:QuantumNous/new-api#6081; https://docs.x.ai/developers/model-capabilities/text/reasoning',
  },
  {
    kinds: ['xai'],
    models: ['grok-4.20*non-reasoning*'],
    refuses: has('presence_penalty', 'frequency_penalty'),
    says: 'Model does not support parameter $.',
    source: 'github:miaoxworld/NativeTavern#83',
  },
  {
    kinds: ['xai'],
    models: ['grok-4', 'grok-4-0709', '*non-reasoning*'],
    refuses: has('reasoning_effort'),
    says: 'Model does not support parameter $.',
    source: 'github:lobehub/lobehub#8379',
  },
  {
    kinds: ['xai'],
    models: ['grok-4.5', 'grok-4.6', 'grok-4.7'],
    refuses: otherThan('reasoning_effort', ['low', 'medium', 'high', 'xhigh']),
    says: '$: invalid value.',
    source: 'github:mnfst/modelparams.dev#330',
  },
  {
    kinds: ['xai'],
    models: ['grok-4.3'],
    refuses: otherThan('reasoning_effort', ['none', 'low', 'medium', 'high']),
    says: '$: invalid value.',
    source: 'https://docs.x.ai/developers/model-capabilities/text/reasoning',
  },
  {
    kinds: ['perplexity'],
    wires: ['responses'],
    refuses: lacks('input'),
    says: '$ is required',
    source: '@perplexity-ai/perplexity_ai 0.38.5, `ResponsesRequest`',
  },
  {
    kinds: ['perplexity'],
    wires: ['responses'],
    refuses: untypedItem,
    says: '$: every item of the input needs a type',
    source: 'LiteLLM 1.110.2, llms/perplexity/responses/transformation.py, `_ensure_message_type`',
  },
  {
    kinds: ['perplexity'],
    wires: ['responses'],
    refuses: partOtherThan('input_text', 'input_image', 'input_file'),
    says: '$: unknown type',
    source: 'https://pypi.org/project/perplexityai/0.46.1, generated/api.py, `InputContentPartInput`',
  },
  {
    kinds: ['perplexity'],
    wires: ['responses'],
    refuses: otherThan('reasoning.effort', ['none', 'minimal', 'low', 'medium', 'high', 'xhigh']),
    says: '$: unknown value',
    source: 'https://pypi.org/project/perplexityai/0.46.1, generated/api.py, `ReasoningConfigInput`',
  },
  {
    kinds: ['perplexity'],
    wires: ['responses'],
    refuses: neither('model', 'models', 'preset', 'effort'),
    says: 'model or preset is required',
    source: 'https://docs.perplexity.ai/docs/agent-api/building-agents/define-the-run',
  },
  {
    kinds: ['perplexity'],
    refuses: () => 'model',
    says: 'Sonar is now the Agent API.',
    source: 'github:danielmiessler/Fabric#2276; https://docs.perplexity.ai/getting-started/pricing',
  },
  {
    kinds: ['lm-studio'],
    refuses: isOneOf('response_format.type', ['json_object']),
    says: "'$' must be 'json_schema' or 'text'",
    source: 'https://lmstudio.ai/docs/developer/openai-compat/structured-output',
  },
  {
    kinds: ['moonshot'],
    models: ['kimi-*'],
    refuses: unless(has('temperature'), isOneOf('temperature', [1])),
    says: 'invalid $: only 1 is allowed for this model',
    source:
      'LiteLLM 1.110.2, litellm/llms/moonshot/chat/transformation.py; @ai-sdk/moonshotai 2.0.61, supportsSamplingOptions',
  },
  {
    kinds: ['moonshot'],
    models: ['kimi-*'],
    refuses: unless(has('top_p'), isOneOf('top_p', [0.95])),
    says: 'invalid $: only 0.95 is allowed for this model',
    source:
      '@ai-sdk/moonshotai 2.0.61, src/moonshotai-chat-language-model.ts, supportsSamplingOptions; https://platform.moonshot.ai/docs/guide/kimi-k2-5-quickstart',
  },
  {
    kinds: ['moonshot'],
    models: ['kimi-*'],
    refuses: unless(has('presence_penalty', 'frequency_penalty'), isOneOf('presence_penalty', [0])),
    says: 'invalid $: only 0 is allowed for this model',
    source: '@ai-sdk/moonshotai 2.0.61, supportsSamplingOptions',
  },
  {
    kinds: ['moonshot'],
    models: ['moonshot-v1*'],
    refuses: outside('temperature', 0, 1),
    says: 'invalid $: must be within [0, 1]',
    source:
      'LiteLLM 1.110.2, litellm/llms/moonshot/chat/transformation.py: temperature on KIMI API is [0, 1]',
  },
  {
    kinds: ['moonshot'],
    models: ['moonshot-v1*'],
    refuses: isOneOf('tool_choice', ['required']),
    says: '$: required is not supported',
    source: 'https://platform.moonshot.ai/docs/guide/migrating-from-openai-to-kimi#about-tool_choice',
  },
  {
    kinds: ['minimax'],
    refuses: moreThanOne,
    says: 'invalid params, $ must be 1 (2013)',
    source: 'https://platform.minimax.io/docs/api-reference/text-openai-api',
  },
  {
    kinds: ['minimax'],
    refuses: outside('temperature', 0.000001, 1),
    says: 'invalid params, $ must be in (0, 1] (2013)',
    source: 'https://platform.minimax.io/docs/api-reference/text-openai-api',
  },
  {
    kinds: ['deepseek'],
    refuses: toolContent,
    says: '$: unknown variant `image_url`, expected `text`',
    source: 'https://api-docs.deepseek.com/api/create-chat-completion: content of tools is a string',
  },
];

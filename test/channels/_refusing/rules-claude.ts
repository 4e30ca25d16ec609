import {
  both,
  has,
  isJson,
  isOneOf,
  lacks,
  objects,
  outside,
  unknownIn,
  unless,
  valueAt,
  words,
  type Check,
} from './checks.ts';
import { claudeTakes, schemaAt, toolSchema } from './schemas.ts';
import type { Rule } from './table.ts';

const wires = ['messages', 'invoke'];
const kinds = ['*'];
const vercel = '@ai-sdk/anthropic 3.0.140, src/anthropic-messages-language-model.ts, `getModelCapabilities`';
const newest = [
  '*claude-sonnet-5*',
  '*claude-opus-5*',
  '*claude-fable-5*',
  '*claude-haiku-5-5*',
  '*claude-opus-4-7*',
  '*claude-opus-4-8*',
];
const alwaysThink = ['*claude-sonnet-5-5*', '*claude-opus-5-5*', '*claude-fable-5*'];
const thinks = isOneOf('thinking.type', ['enabled', 'adaptive']);
const forces = isOneOf('tool_choice.type', ['any', 'tool']);

/** Members of a request: @anthropic-ai/sdk 1.14.0, resources/messages/messages.ts and resources/beta/messages, `MessageCreateParams`. */
const members = words(`
    model messages max_tokens system stream temperature top_p top_k stop_sequences tools tool_choice thinking metadata
    service_tier output_config output_format container context_management mcp_servers inference_geo cache_control speed
    anthropic_version anthropic_beta fallback_model betas user_profile_id task_budget fallbacks
  `);

/** A block of text that is empty, or an assistant's last words that end with a blank. */
const emptyText: Check = ({ body }) => {
  for (const [index, { content }] of objects(body['messages']).entries())
    if (content === '' || objects(content).some(({ type, text }) => type === 'text' && text === ''))
      return `messages.${index}`;
  return undefined;
};

/** Results that do not stand at the head of the turn behind their calls. */
const unpaired: Check = ({ body }) => {
  const messages = objects(body['messages']);
  for (const [index, { content }] of messages.entries()) {
    const calls = objects(content).filter(({ type }) => type === 'tool_use');
    const next = objects(messages[index + 1]?.['content']);
    const given = new Set(next.filter(({ type }) => type === 'tool_result').map(({ tool_use_id: id }) => id));
    if (calls.some(({ id }) => !given.has(id))) return `messages.${index}`;
  }
  return undefined;
};

const badToolId: Check = ({ body }) =>
  objects(body['messages'])
    .flatMap(({ content }) => objects(content))
    .some(({ type, id }) => type === 'tool_use' && !/^[a-zA-Z0-9_-]+$/.test(String(id)))
    ? 'messages.tool_use.id'
    : undefined;

const budgetTooLarge: Check = ({ body }) => {
  const budget = valueAt(body, 'thinking.budget_tokens');
  if (typeof budget !== 'number') return undefined;
  return budget < 1024 || budget >= Number(body['max_tokens']) ? 'thinking.budget_tokens' : undefined;
};

const firstOfAssistant: Check = ({ body }) =>
  objects(body['messages'])[0]?.['role'] === 'user' ? undefined : 'messages.0.role';

const foreignMark: Check = ({ body }) =>
  JSON.stringify(body).includes('"prompt_cache_breakpoint"') ? 'prompt_cache_breakpoint' : undefined;

const strictTool: Check = ({ body }) =>
  objects(body['tools']).some((tool) => isJson(tool['function'])) ? 'tools.0.function' : undefined;

/** Claude, in the messages format, wherever it is served. */
export const claudeRules: readonly Rule[] = [
  {
    kinds,
    wires,
    refuses: lacks('max_tokens'),
    says: '$: Field required',
    source: '@anthropic-ai/sdk 1.14.0, `MessageCreateParams.max_tokens` is required',
  },
  {
    kinds,
    wires,
    refuses: unknownIn(members),
    says: '$: Extra inputs are not permitted',
    source: 'github:BerriAI/litellm#14365',
  },
  {
    kinds,
    wires,
    refuses: foreignMark,
    says: 'messages.0.content.0.text.$: Extra inputs are not permitted',
    source: 'github:anthropics/claude-code#4378',
  },
  {
    kinds,
    wires,
    refuses: strictTool,
    says: '$: Extra inputs are not permitted',
    source: 'github:tidyverse/ellmer#548',
  },
  {
    kinds,
    wires,
    refuses: outside('temperature', 0, 1),
    says: '$: range: 0..1',
    source: '@anthropic-ai/sdk 1.14.0, `MessageCreateParams.temperature`: ranges from 0.0 to 1.0',
  },
  {
    kinds,
    wires,
    models: ['*claude*', ...newest.map((name) => `!${name}`)],
    refuses: both(has('temperature'), has('top_p')),
    says: '`temperature` and `top_p` cannot both be specified for this model. Please use only one.',
    source:
      'https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-anthropic-claude-messages.html',
  },
  {
    kinds,
    wires,
    models: newest,
    refuses: has('temperature', 'top_p', 'top_k'),
    says: '$: Extra inputs are not permitted',
    source: `${vercel}: rejectsSamplingParameters`,
  },
  {
    kinds,
    wires,
    refuses: both(thinks, forces),
    says: 'Thinking may not be enabled when tool_choice forces tool use.',
    source: 'github:mastra-ai/mastra#7507',
  },
  {
    kinds,
    wires,
    models: ['*claude-sonnet-5-5*', '*claude-opus-5-5*', '*claude-fable-5-1*'],
    refuses: forces,
    says: '$: forced tool use is not supported for this model.',
    source: `${vercel}: rejectsForcedToolUse`,
  },
  {
    kinds,
    wires,
    models: alwaysThink,
    refuses: isOneOf('thinking.type', ['disabled']),
    says: '$: this model always thinks.',
    source: `${vercel}: rejectsThinkingDisabled`,
  },
  {
    kinds,
    wires,
    models: [...alwaysThink, '*claude-haiku-5-5*'],
    refuses: isOneOf('thinking.type', ['enabled']),
    says: '$: this model only supports adaptive thinking.',
    source: `${vercel}: rejectsBudgetThinking`,
  },
  {
    kinds,
    wires,
    models: ['*claude-haiku-4-5*', '*claude-sonnet-4-5*', '*claude-opus-4-5*'],
    refuses: isOneOf('thinking.type', ['adaptive']),
    says: '$: adaptive thinking is not supported for this model.',
    source: 'https://platform.claude.com/docs/en/build-with-claude/adaptive-thinking: from Claude 4.6 on',
  },
  {
    kinds,
    wires,
    models: ['*claude-haiku-4-5*', '*claude-sonnet-4-5*'],
    refuses: has('output_config.effort'),
    says: '$: this model does not support the effort parameter.',
    source:
      'https://platform.claude.com/docs/en/build-with-claude/effort: Opus 4.5, and all from Claude 4.6 on',
  },
  {
    kinds,
    wires,
    refuses: budgetTooLarge,
    says: '`max_tokens` must be greater than `$`, which must be at least 1024.',
    source: 'https://platform.claude.com/docs/en/build-with-claude/extended-thinking',
  },
  {
    kinds,
    wires,
    refuses: both(
      isOneOf('thinking.type', ['enabled']),
      unless(has('temperature'), isOneOf('temperature', [1])),
    ),
    says: '`temperature` may only be set to 1 when thinking is enabled.',
    source: 'https://platform.claude.com/docs/en/build-with-claude/extended-thinking#feature-compatibility',
  },
  {
    kinds,
    wires,
    refuses: both(isOneOf('thinking.type', ['enabled']), has('top_k')),
    says: '`top_k` must be unset when thinking is enabled.',
    source: 'https://platform.claude.com/docs/en/build-with-claude/extended-thinking#feature-compatibility',
  },
  {
    kinds,
    wires,
    refuses: schemaAt('output_config.format.schema', claudeTakes),
    says: "$: for 'object' type, 'additionalProperties' must be explicitly set to false, and constraints are not supported",
    source:
      'https://platform.claude.com/docs/en/build-with-claude/structured-outputs#json-schema-limitations',
  },
  {
    kinds,
    wires,
    refuses: toolSchema(claudeTakes),
    says: "tools: $: for 'object' type, 'additionalProperties' must be explicitly set to false, and constraints are not supported",
    source: 'https://platform.claude.com/docs/en/build-with-claude/structured-outputs#strict-tool-use',
  },
  {
    kinds,
    wires,
    refuses: emptyText,
    says: '$: text content blocks must be non-empty',
    source: 'github:anthropics/claude-code#53054',
  },
  {
    kinds,
    wires,
    refuses: unpaired,
    says: '$: `tool_use` ids were found without `tool_result` blocks immediately after',
    source: 'github:anthropics/claude-code#2697',
  },
  {
    kinds,
    wires,
    refuses: badToolId,
    says: "$: String should match pattern '^[a-zA-Z0-9_-]+$'",
    source: 'https://platform.claude.com/docs/en/api/messages',
  },
  {
    kinds,
    wires,
    refuses: firstOfAssistant,
    says: '$: first message must use the "user" role',
    source: 'https://platform.claude.com/docs/en/api/messages',
  },
];

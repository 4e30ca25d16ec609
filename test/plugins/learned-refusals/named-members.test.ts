import { describe, expect, test } from 'vitest';
import { upstreamError } from '../../../core/formats/_shared/upstream-error/index.ts';
import { namedMembers } from '../../../plugins/learned-refusals/named-members.ts';

type Json = Record<string, unknown>;

const openai = (message: string, param: string | null = null): Json => ({
  error: { message, type: 'invalid_request_error', param, code: null },
});
const anthropic = (message: string): Json => ({
  type: 'error',
  error: { type: 'invalid_request_error', message },
});
const gemini = (message: string): Json => ({ error: { code: 400, message, status: 'INVALID_ARGUMENT' } });
const pydantic = (...loc: readonly unknown[]): Json => ({
  detail: [
    { type: 'extra_forbidden', loc: ['body', ...loc], msg: 'Extra inputs are not permitted', input: 1 },
  ],
});

function named(body: Json, format = 'chat-completions', status = 400) {
  return namedMembers(upstreamError(status, JSON.stringify(body)), format)?.map(({ path }) => path);
}

describe('a refusal in the words of a provider names its members', () => {
  test.each<readonly [string, Json, readonly string[]]>([
    ['OpenAI', openai("Unsupported parameter: 'top_p' is not supported with this model."), ['top_p']],
    ['OpenAI', openai("Unknown parameter: 'reasoning.enabled'."), ['reasoning.enabled']],
    ['OpenAI', openai('Unrecognized request argument supplied: reasoning_effort'), ['reasoning_effort']],
    ['OpenAI by param', openai('This field is unsupported.', 'logit_bias'), ['logit_bias']],
    [
      'OpenAI for a value',
      openai(
        "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is supported.",
      ),
      ['temperature'],
    ],
    ['Fireworks', openai("Extra inputs are not permitted, field: 'prompt_cache_key'"), ['prompt_cache_key']],
    [
      'NVIDIA',
      openai(
        "[{'type': 'extra_forbidden', 'loc': ('body', 'verbosity'), 'msg': 'Extra inputs are not permitted'}]",
      ),
      ['verbosity'],
    ],
    [
      'Databricks',
      { error_code: 'BAD_REQUEST', message: 'Bad request: json: unknown field "prompt_cache_key"\n' },
      ['prompt_cache_key'],
    ],
    ['Cohere', { message: "unknown field: parameter 'logit_bias' is not a valid field." }, ['logit_bias']],
    ['Moonshot', openai('invalid temperature: only 1 is allowed for this model'), ['temperature']],
    ['Anthropic', anthropic('context_management: Extra inputs are not permitted'), ['context_management']],
    [
      'Anthropic behind a reseller',
      anthropic('Error from provider (Anthropic): context_management: Extra inputs are not permitted'),
      ['context_management'],
    ],
    ['Anthropic', anthropic('`temperature` is deprecated for this model.'), ['temperature']],
    [
      'Bedrock for Claude',
      {
        message:
          'The model returned the following errors: `temperature` and `top_p` cannot both be specified for this model. Please use only one.',
      },
      ['top_p'],
    ],
    [
      'Bedrock',
      {
        message:
          'Malformed input request: #: extraneous key [response_style] is not permitted, please reformat your input and try again.',
      },
      ['response_style'],
    ],
    ['Gemini', gemini('Invalid JSON payload received. Unknown name "top_k": Cannot find field.'), ['top_k']],
    [
      'Gemini within an object',
      gemini(`Invalid JSON payload received. Unknown name "seed" at 'generation_config': Cannot find field.`),
      ['generation_config.seed'],
    ],
    ['Groq', openai("property 'reasoning' is unsupported"), ['reasoning']],
    ['Groq with a guess', openai("property 'user_id' is unsupported, did you mean 'user'?"), ['user_id']],
    ['Mistral', pydantic('frequency_penalty'), ['frequency_penalty']],
    [
      'xAI',
      {
        code: 'Client specified an invalid argument',
        error: 'Argument not supported on this model: presencePenalty',
      },
      ['presencePenalty'],
    ],
    [
      'xAI later',
      openai('Model grok-4-1-fast does not support parameter presencePenalty.'),
      ['presencePenalty'],
    ],
  ])('%s: %j', (_, body, members) => {
    expect(named(body)).toEqual(members);
    expect(named(body, 'chat-completions', 422)).toEqual(members);
  });

  test.each<readonly [string, Json]>([
    ['a member of a message', pydantic('messages', 0, 'user', 'name')],
    [
      'a member of a message',
      anthropic('messages.65.content.1.tool_use.text: Extra inputs are not permitted'),
    ],
    [
      'a member of a message',
      openai(
        "'messages.0' : for 'role:user' the following must be satisfied[('messages.0' : property 'timestamp' is unsupported)]",
      ),
    ],
    [
      'a member of a tool',
      gemini(
        `Invalid JSON payload received. Unknown name "const" at 'tools[0].function_declarations[5].parameters': Cannot find field.`,
      ),
    ],
    [
      'a member of a tool',
      {
        message:
          'Malformed input request: #/tools/4: extraneous key [description] is not permitted#/tools/4: extraneous key [inputSchema] is not permitted',
      },
    ],
    [
      'a schema',
      gemini(
        `Invalid JSON payload received. Unknown name "responseSchema" at 'generation_config': Cannot find field.`,
      ),
    ],
    [
      'a member of a message',
      openai(
        "[{'type': 'extra_forbidden', 'loc': ('body', 'messages', 0, 'user', 'name'), 'msg': 'Extra inputs are not permitted'}]",
      ),
    ],
    ['storage', openai("Extra inputs are not permitted, field: 'store'")],
    ['a limit', anthropic('max_tokens: Extra inputs are not permitted')],
    ['an object that holds a schema', openai("Unknown parameter: 'text'.")],
    [
      'the instructions',
      gemini('Invalid JSON payload received. Unknown name "system_instruction": Cannot find field.'),
    ],
    [
      'a setting with something that must stay',
      { detail: [...(pydantic('seed').detail as Json[]), ...(pydantic('tools').detail as Json[])] },
    ],
    ['a path that is too deep', openai("Unknown parameter: 'a.b.c.d'.")],
    ['a model', openai('The model `gpt-9` does not support this parameter.', 'model')],
    [
      'one of two settings that do not go together',
      openai(
        "Unsupported parameter: 'top_p' is not supported with this model when reasoning is on.",
        'top_p',
      ),
    ],
    ['another model', openai('messages.0: model grok does not support parameter name.')],
    ['no member', openai('The request is malformed.', 'seed')],
  ])('but not %s: %j', (_, body) => {
    expect(named(body, 'messages')).toBeUndefined();
  });

  test('and of no other failure', () => {
    const body = openai("Unsupported parameter: 'top_p' is not supported with this model.");
    for (const status of [401, 404, 418, 429, 500])
      expect(named(body, 'chat-completions', status)).toBeUndefined();
    const { error } = body as { readonly error: Json };
    expect(named({ error: { ...error, code: 'content_filter' } })).toBeUndefined();
  });
});

test.each([
  ['max_tokens', 'max_completion_tokens'],
  ['max_completion_tokens', 'max_tokens'],
])('a limit named %s moves to %s in chat completions', (path, as) => {
  const error = upstreamError(422, JSON.stringify(pydantic(path)));
  expect(namedMembers(error, 'chat-completions')).toEqual([{ path, as }]);
  expect(namedMembers(error, 'messages')).toBeUndefined();
});

test('a sentence of any length and shape is read in the time of its length', () => {
  const shapes = [
    '#'.repeat(4000),
    'unknown name '.repeat(300),
    `${'a.'.repeat(2000)}: extra`,
    'model '.repeat(700),
  ];
  for (const message of shapes) expect(named(openai(message))).toBeUndefined();
});

import {
  doesNotAlternate,
  endsAmiss,
  has,
  isOneOf,
  listsTexts,
  otherThan,
  outside,
  roleOtherThan,
  toolNameLongerThan,
  unless,
  type Check,
} from './checks.ts';
import type { Rule } from './table.ts';

const hasJsonSchema = isOneOf('response_format.type', ['json_schema']);
const fourRoles = roleOtherThan('system', 'user', 'assistant', 'tool');

/** Baichuan's own pages of its API; what two gateways and Dify write for it. */
const baichuan = { kinds: ['baichuan'] } as const;
const baichuanPages =
  'https://f8cxtsvnr8.apifox.cn/apidoc/project-3794483/api-135485574; https://docs.cloudsway.net/zh/maasapi/api-reference/text/MaaS_baichuan/';
const spark = { kinds: ['iflytek'] } as const;
const sparkPage = 'https://www.xfyun.cn/doc/spark/HTTP%E8%B0%83%E7%94%A8%E6%96%87%E6%A1%A3.html';
const qianfan = { kinds: ['qianfan'] } as const;
const qianfanPage = 'https://cloud.baidu.com/doc/qianfan-api/s/3m7of64lb';
const stepfun = { kinds: ['stepfun'] } as const;
const stepfunPage = 'https://platform.stepfun.com/docs/zh/api-reference/chat/chat-completion-create';

/** A stop sequence that is longer than the provider takes, or one too many. */
const stopsBeyond =
  (most: number, length: number): Check =>
  ({ body: { stop } }) => {
    const list = typeof stop === 'string' ? [stop] : Array.isArray(stop) ? stop : [];
    return list.length > most || list.some((one) => String(one).length > length) ? 'stop' : undefined;
  };

/**
 * What providers in China refuse, or answer otherwise than in chat completions. Read on 2026-11-26: the pages of Qianfan, Spark and StepFun beside
 * https://github.com/kingfs/ai-api-protocol-bridge, docs/chinese-vendor-chat-completions-divergences.md.
 */
export const chinaRules: readonly Rule[] = [
  {
    ...baichuan,
    refuses: fourRoles,
    says: 'invalid_request_error: $',
    source: baichuanPages,
  },
  {
    ...baichuan,
    refuses: outside('temperature', 0, 1),
    says: 'invalid_request_error: $ must be between 0 and 1',
    source: `${baichuanPages}; lobehub, packages/model-runtime/src/providers/baichuan/index.ts, \`normalizeTemperature\` (https://github.com/lobehub/lobehub)`,
  },
  {
    ...baichuan,
    refuses: outside('frequency_penalty', 1, 2),
    says: 'invalid_request_error: $ must be between 1 and 2',
    source:
      'https://github.com/lobehub/lobehub, src/libs/agent-runtime/baichuan/index.ts: frequency_penalty must be between 1 and 2',
  },
  {
    ...baichuan,
    refuses: hasJsonSchema,
    says: 'invalid_request_error: $ must be text or json_object',
    source:
      'https://github.com/langgenius/dify-official-plugins, models/baichuan/models/llm/baichuan4.yaml, `res_format`',
  },
  {
    ...baichuan,
    refuses: listsTexts('system', 'user', 'assistant', 'tool'),
    says: 'invalid_request_error: $ must be a string',
    source:
      'https://github.com/CherryHQ/cherry-studio, src/renderer/src/utils/provider.ts, NOT_SUPPORT_ARRAY_CONTENT_PROVIDERS',
  },
  { ...spark, refuses: fourRoles, says: '$ is not supported', source: sparkPage },
  {
    ...spark,
    refuses: outside('top_k', 1, 6),
    says: 'SchemaCheckError: the value of $ must be between 1 and 6',
    source: `${sparkPage}; https://docs.iflyaicloud.com/doc/237; the sentence as in github:cline/cline#1741`,
  },
  {
    ...spark,
    refuses: outside('temperature', 0, 2),
    says: 'SchemaCheckError: the value of $ must be between 0 and 2',
    source: sparkPage,
  },
  {
    ...spark,
    refuses: outside('presence_penalty', 0, 2),
    says: '$: value must be between 0 and 2',
    source: sparkPage,
  },
  {
    ...spark,
    refuses: outside('frequency_penalty', 0, 1),
    says: '$: value must be between 0 and 1',
    source: sparkPage,
  },
  {
    ...spark,
    models: ['4.0Ultra', 'max-32k'],
    refuses: outside('max_tokens', 1, 32_768),
    says: '$: value must be between 1 and 32768',
    source: sparkPage,
  },
  {
    ...spark,
    models: ['generalv3*'],
    refuses: outside('max_tokens', 1, 8192),
    says: '$: value must be between 1 and 8192',
    source: sparkPage,
  },
  {
    ...spark,
    models: ['lite', 'pro-128k'],
    refuses: outside('max_tokens', 1, 4096),
    says: '$: value must be between 1 and 4096',
    source: sparkPage,
  },
  {
    ...spark,
    refuses: hasJsonSchema,
    says: '$: value must be text or json_object',
    source: sparkPage,
  },
  {
    ...spark,
    models: ['lite', 'pro-128k', 'generalv3'],
    refuses: has('tools'),
    says: '$: function calls are for Spark Max and 4.0 Ultra',
    source: sparkPage,
  },
  {
    ...spark,
    refuses: toolNameLongerThan(32),
    says: '$: longer than 32',
    source: sparkPage,
  },
  {
    ...spark,
    refuses: unless(has('tools'), isOneOf('tool_calls_switch', [true])),
    says: 'Without tool_calls_switch calls come as an object, not as a list ($)',
    source: `${sparkPage}; https://github.com/block/goose, documentation of providers: Spark needs tool_calls_switch=true`,
  },
  {
    kinds: ['modelscope'],
    refuses: hasJsonSchema,
    status: 500,
    says: 'The answer has `choices: null` for a $ of json_schema',
    source: 'github:modelscope/modelscope#1801',
  },
  {
    kinds: ['modelscope'],
    refuses: listsTexts('system', 'user', 'assistant', 'tool'),
    says: '$: Input should be a valid string',
    source: 'LiteLLM 1.110.2, litellm/llms/modelscope/chat/transformation.py, `_transform_messages`',
  },
  {
    ...qianfan,
    refuses: roleOtherThan('system', 'user', 'assistant', 'tool', 'function'),
    says: 'invalid_argument: $',
    source: qianfanPage,
  },
  {
    ...qianfan,
    models: ['ernie-*'],
    refuses: doesNotAlternate,
    says: 'the role of message with odd index in the messages must be assistant ($)',
    source: `${qianfanPage}; the sentence as in github:ChatGPTNextWeb/NextChat#5194`,
  },
  {
    ...qianfan,
    models: ['ernie-*'],
    refuses: endsAmiss,
    says: 'the last message must be of the user or of a tool ($)',
    source: `${qianfanPage}; github:baidubce/bce-qianfan-sdk#866`,
  },
  {
    ...qianfan,
    models: ['ernie-*'],
    refuses: outside('temperature', 0.01, 1),
    says: 'temperature should be in the range (0, 1.0] ($)',
    source:
      'github:langgenius/dify#5572; https://github.com/langgenius/dify-official-plugins, models/wenxin/models/llm/ernie-4.5-turbo-128k.yaml',
  },
  {
    ...qianfan,
    refuses: outside('seed', 1, 2_147_483_646),
    says: '$ should be in the range (0, 2147483647)',
    source: qianfanPage,
  },
  {
    ...qianfan,
    refuses: stopsBeyond(4, 20),
    says: '$ should have at most 4 elements of 20 characters',
    source: qianfanPage,
  },
  {
    ...qianfan,
    models: ['ernie-x1*'],
    refuses: has('stop', 'seed', 'penalty_score'),
    says: '$ is not supported by this model',
    source: qianfanPage,
  },
  {
    ...qianfan,
    refuses: outside('thinking_budget', 100, 16_384),
    says: '$ should be in the range [100, 16384]',
    source:
      'https://github.com/lobehub/lobehub, packages/model-runtime/src/providers/wenxin/index.ts, `thinking_budget`',
  },
  { ...stepfun, refuses: fourRoles, says: 'request_params_invalid: $', source: stepfunPage },
  {
    ...stepfun,
    models: ['step-3.7*', 'step-5*'],
    refuses: otherThan('reasoning_effort', ['low', 'medium', 'high']),
    says: 'request_params_invalid: $ must be low, medium or high',
    source: `${stepfunPage}; github:anomalyco/models.dev#1903`,
  },
  {
    ...stepfun,
    models: ['step-3.5-flash*'],
    refuses: otherThan('reasoning_effort', ['low', 'high']),
    says: 'request_params_invalid: $ must be low or high',
    source: `${stepfunPage}; github:earendil-works/pi#6783; github:anomalyco/models.dev#1988`,
  },
  {
    ...stepfun,
    models: ['step-1*', 'step-2*'],
    refuses: has('reasoning_effort'),
    says: 'request_params_invalid: $',
    source: 'github:anomalyco/models.dev#2854: these models have no control of reasoning',
  },
  {
    ...stepfun,
    refuses: outside('temperature', 0, 2),
    says: 'request_params_invalid: $ must be between 0 and 2',
    source: stepfunPage,
  },
];

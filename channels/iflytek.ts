import type { UpstreamRequest } from 'sluice';
import { openaiLike } from './_kit/dialect/openai-like.ts';

/** iFlytek Spark; the key is the APIPassword of the console. https://www.xfyun.cn/doc/spark/HTTP%E8%B0%83%E7%94%A8%E6%96%87%E6%A1%A3.html */
export default openaiLike({
  name: 'iflytek',
  baseUrl: 'https://spark-api-open.xf-yun.com/v1',
  models: ['4.0Ultra', 'generalv3*', 'max-32k', 'pro-128k', 'lite'],
  beside: (parts) => ({
    ...parts,
    open: (call, request) => parts.open(call, { ...request, body: withCallLists(request.body) }),
  }),
  traits: {
    '*': {
      reasoning: 'none',
      outputLimitField: 'max_tokens',
      jsonSchema: false,
      toolNameLimit: 32,
      ranges: rangesTo(32_768),
      refuses: ['choices', 'logprobs', 'topLogprobs', 'seed'],
    },
    'generalv3*': { ranges: rangesTo(8192) },
    // Functions are for Spark Max and 4.0 Ultra.
    generalv3: { tools: false },
    'pro-128k': { tools: false, ranges: rangesTo(4096) },
    lite: { tools: false, ranges: rangesTo(4096) },
  },
});

/** Ranges of settings, with the longest output of a version. */
function rangesTo(longest: number): Readonly<Record<string, { readonly min: number; readonly max: number }>> {
  return {
    maxOutput: { min: 1, max: longest },
    topK: { min: 1, max: 6 },
    presencePenalty: { min: 0, max: 2 },
    frequencyPenalty: { min: 0, max: 1 },
  };
}

/** Requests tool calls as a list, as the official API has them, because Spark by default returns one call as an object. */
function withCallLists(body: UpstreamRequest['body']): UpstreamRequest['body'] {
  if (typeof body !== 'string' && !Buffer.isBuffer(body)) return body;
  if (!body.includes('"tools"') || body.includes('"tool_calls_switch"')) return body;
  const text = body.toString();
  const begin = text.indexOf('{') + 1;
  return `${text.slice(0, begin)}"tool_calls_switch":true,${text.slice(begin)}`;
}

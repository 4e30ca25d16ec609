/** Traits of open-weight model families, wherever they are served: how they reason, and how reasoning is switched. */
import type { ModelTraits } from 'sluice';

/** Models whose reasoning cannot be switched off or adjusted. */
export const thinksAlike: ModelTraits = { reasoning: 'none', thinksByDefault: true, stopsThinking: false };

/** Efforts of gpt-oss, wherever it is served. https://openai.com/open-models */
export const gptOss: ModelTraits = {
  reasoning: 'effort',
  efforts: ['low', 'medium', 'high'],
  thinksByDefault: true,
};

/**
 * How families of open models think, by their names wherever they are served. The first that fits counts. `alike`: always. `on` and `off`:
 * unless told otherwise, and not unless told so. https://docs.together.ai/docs/inference/chat/reasoning
 * https://docs.qwencloud.com/developer-guides/text-generation/thinking https://docs.z.ai/guides/capabilities/thinking-mode
 */
const families: readonly (readonly [name: RegExp, thinks: 'alike' | 'on' | 'off' | 'never'])[] = [
  [/thinking|deepseek[-/_].*r1|\br1-|qwq|minimax-m2|kimi-k2[.p]7|glm-(?:5[.p]3|z1)/i, 'alike'],
  [/qwen-?3.*(?:instruct|coder)|qwen-?[12]/i, 'never'],
  [/deepseek-v3[.p][12]/i, 'off'],
  [/deepseek-v[4-9]|kimi-k2[.p][56]|glm-(?:4[.p][5-9]|[5-9])|qwen-?3/i, 'on'],
];

/** Returns the reasoning traits of an open model. `control` switches the reasoning of hybrid models. Undefined for an unknown family. */
export function openModel(model: string, control: ModelTraits): ModelTraits | undefined {
  if (/gpt-oss/i.test(model)) return gptOss;
  const [, thinks] = families.find(([name]) => name.test(model)) ?? [];
  if (thinks === undefined) return undefined;
  if (thinks === 'never') return { reasoning: 'none' };
  if (thinks === 'alike') return thinksAlike;
  return { ...control, ...(thinks === 'on' ? { thinksByDefault: true } : {}) };
}

/** Channel for the Anthropic API, and traits of Claude models by generation, wherever they are served. */
import type { ModelTraits } from 'sluice';
import { apiKey, httpChannel } from './_kit/http/http-channel.ts';

/** Chat and token counts in the messages format. */
export default httpChannel({
  name: 'anthropic',
  catalogue: ['anthropic'],
  baseUrl: 'https://api.anthropic.com/v1',
  models: ['claude-*'],
  speaks: { chat: ['messages'], 'count-tokens': ['messages'] },
  keeps: { messages: ['files', 'messages/batches'] },
  // https://platform.claude.com/docs/en/build-with-claude/batch-processing
  batchShare: 0.5,
  modelList: '/models?limit=1000',
  headers: apiKey,
  // A client of another format names no version; this one still takes sampling settings, which translated requests may carry.
  defaults: { 'anthropic-version': '2023-06-01' },
  traits: (model) => ({
    ...oldLimits(generationOf(model), model),
    ...claudeTraits(model),
    mcp: ['messages'],
  }),
});

/** Limits of models of which the catalogue may no longer have a row. Newer ones say theirs in {@link claudeTraits}. */
function oldLimits(generation: number, model: string): ModelTraits {
  if (generation >= 4.6) return {};
  if (generation < 3.7) return { inputLimit: 200_000, outputLimit: generation < 3.5 ? 4096 : 8192 };
  return { inputLimit: 200_000, outputLimit: isOldOpus(generation, model) ? 32_000 : 64_000 };
}

function isOldOpus(generation: number, model: string): boolean {
  return model.includes('opus') && generation < 4.5;
}

/**
 * https://platform.claude.com/docs/en/build-with-claude/structured-outputs#json-schema-limitations; formats and `oneOf` as in
 * @anthropic-ai/sdk 1.11.0, lib/transform-json-schema.
 */
export const schemaSubset: NonNullable<ModelTraits['schemaSubset']> = {
  closesObjects: true,
  refuses: [
    'minimum',
    'maximum',
    'exclusiveMinimum',
    'exclusiveMaximum',
    'multipleOf',
    'minLength',
    'maxLength',
    'maxItems',
    'uniqueItems',
    'contains',
    'minContains',
    'maxContains',
    'prefixItems',
    'minProperties',
    'maxProperties',
    'patternProperties',
    'propertyNames',
    'dependentRequired',
    'dependentSchemas',
    'oneOf',
    'not',
    'if',
    'then',
    'else',
  ],
  formats: ['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'uri', 'ipv4', 'ipv6', 'uuid'],
  highestMinItems: 1,
};

/** Traits of a Claude model by its name. */
export function claudeTraits(model: string): ModelTraits {
  return { ...traitsOfGeneration(generationOf(model), model), toolNameLimit: 128, schemaSubset };
}

/**
 * Returns the generation in a name (3.5, 4, 4.6 …), wherever the number stands: `claude-opus-4-6`, `claude-3-5-haiku-20241022`,
 * `claude-sonnet-4-20250514`. A name without a number counts as the newest generation.
 */
export function generationOf(model: string): number {
  if (/^claude-(?:instant|v[12])/.test(model)) return 2;
  const found = /^claude-(?:[a-z]+-)?(\d{1,2})(?:[-.](\d{1,2}))?(?![\d])/.exec(model);
  if (found === null) return Infinity;
  return Number(`${found[1]}.${found[2] ?? 0}`);
}

const ordinary = ['none', 'low', 'medium', 'high'];

function traitsOfGeneration(generation: number, model: string): ModelTraits {
  const opus = model.includes('opus');
  if (generation < 3.7) {
    return {
      reasoning: 'none',
      jsonSchema: false,
      midSystem: false,
      prefill: true,
    };
  }
  if (generation < 4.6) {
    return {
      reasoning: 'budget',
      // https://platform.claude.com/docs/en/build-with-claude/effort: of these, Opus 4.5 alone.
      ...(opus && generation >= 4.5 ? { efforts: ordinary } : {}),
      jsonSchema: generation >= 4.5 || (opus && generation >= 4.1),
      midSystem: false,
      // From 4.6 on a history that ends with the assistant is answered 400.
      prefill: true,
    };
  }
  // The clouds give Sonnet 4.6 less of both: the catalogue has what each does.
  const limits = generation < 4.7 && !opus ? {} : { inputLimit: 1_000_000, outputLimit: 128_000 };
  const adaptive: ModelTraits = { reasoning: 'adaptive', ...limits };
  if (generation < 4.7)
    return {
      ...adaptive,
      efforts: [...ordinary, 'max'],
      midSystem: false,
    };
  return {
    ...adaptive,
    ...(alwaysThinks(model, generation)
      ? { efforts: [...ordinary.slice(1), 'xhigh', 'max'], thinksByDefault: true, stopsThinking: false }
      : { efforts: [...ordinary, 'xhigh', 'max'] }),
    refuses: ['temperature', 'topP', 'topK'],
    ...(generation < 4.8 ? { midSystem: false } : {}),
  };
}

/** Returns true for models that answer 400 when thinking is switched off: LiteLLM 1.110.2, `thinking_always_on` of the price list. */
function alwaysThinks(model: string, generation: number): boolean {
  return /fable|mythos/.test(model) || (generation >= 5.5 && generation < 6 && /opus|sonnet/.test(model));
}

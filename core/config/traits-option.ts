/** The `traits` of a channel, checked. */
import { z } from 'zod';
import type { ModelTraits } from '../model/traits.ts';

const word = z.string().min(1);
const words = z.array(word);
const tokens = z.int().min(1);
const range = z.strictObject({ min: z.number().optional(), max: z.number().optional() });

const refusedMember = z.union([
  word,
  z.strictObject({ path: word, as: word.optional(), beside: word.optional() }),
]);

const images = z.strictObject({
  delivers: z.enum(['url', 'base64']).optional(),
  streams: z.boolean().optional(),
  promptLength: tokens.optional(),
  most: tokens.optional(),
  sizes: words.optional(),
  qualities: words.optional(),
  styles: words.optional(),
  source: z.strictObject({ mimeType: word, below: tokens }).optional(),
  largest: z.enum(['1K', '2K', '4K']).optional(),
  predicts: z.boolean().optional(),
});

const ofOneFormat = z.strictObject({
  formats: words.min(1).optional(),
  serverTools: word.optional(),
  mcp: words.optional(),
  functionTools: word.optional(),
  reasoning: z
    .enum([
      'adaptive',
      'budget',
      'level',
      'effort',
      'object',
      'thinking',
      'enable-thinking',
      'template',
      'none',
    ])
    .optional(),
  efforts: words.optional(),
  effortAs: z.record(word, word).optional(),
  thinkingBudget: range.optional(),
  templateSwitch: word.optional(),
  templateMember: z.enum(['chat_template_kwargs', 'chat_template_args']).optional(),
  thinkingType: z.enum(['enabled', 'adaptive']).optional(),
  thinksInStreamsOnly: z.boolean().optional(),
  thinksByDefault: z.boolean().optional(),
  stopsThinking: z.boolean().optional(),
  tools: z.literal(false).optional(),
  forcedTools: z.enum(['always', 'without-thinking', 'never']).optional(),
  namedTools: z.literal(false).optional(),
  toolTypes: z.literal(false).optional(),
  requiredTools: z.literal(false).optional(),
  jsonThinking: z.literal(false).optional(),
  outputLimit: tokens.optional(),
  statesOutputLimit: z.boolean().optional(),
  refuses: words.optional(),
  refusedMembers: z.array(refusedMember).optional(),
  outputLimitField: z.enum(['max_tokens', 'max_completion_tokens']).optional(),
  systemRole: z.enum(['system', 'developer']).optional(),
  fetchesUrls: z.boolean().optional(),
  jsonSchema: z.boolean().optional(),
  jsonObject: z.boolean().optional(),
  schemaSubset: z
    .strictObject({
      closesObjects: z.boolean().optional(),
      requiresAll: z.boolean().optional(),
      requiresOne: z.boolean().optional(),
      refuses: words.optional(),
      formats: words.optional(),
      refusedInPatterns: words.optional(),
      highestMinItems: z.int().min(0).optional(),
    })
    .optional(),
  cacheMark: z.enum(['none', 'prompt_cache_breakpoint', 'cache_control', 'cachePoint']).optional(),
  marksTools: z.boolean().optional(),
  refusesUnknown: z.boolean().optional(),
  members: words.optional(),
  ranges: z.record(word, range).optional(),
  reasoningField: z.enum(['reasoning_content', 'reasoning']).optional(),
  finishReasons: z.record(word, word).optional(),
  alternates: z.boolean().optional(),
  parallelHistory: z.boolean().optional(),
  textParts: z.literal(false).optional(),
  keepsResponses: z.literal(false).optional(),
  midSystem: z.boolean().optional(),
  replaysReasoning: z.boolean().optional(),
  streamsArguments: z.boolean().optional(),
  inlineThinking: z.boolean().optional(),
  prefill: z.boolean().optional(),
  toolNameLimit: tokens.optional(),
  transcripts: words.optional(),
  streamsSpeech: z.boolean().optional(),
  mostInputs: tokens.optional(),
  imageTokens: tokens.optional(),
  images: images.optional(),
  inputLimit: tokens.optional(),
} satisfies Record<Exclude<keyof ModelTraits, 'byFormat'>, z.ZodType>);

/** Traits of one model or pattern, as the config of a channel states them: {@link ModelTraits} has what each means. */
export const traitsOption = ofOneFormat.extend({ byFormat: z.record(word, ofOneFormat).optional() });

/** Returns traits of the config. An output limit that stands by the name of a model, not by a pattern, is that model's own. */
export function statedTraits(names: readonly string[], traits: ModelTraits): ModelTraits {
  if (traits.outputLimit === undefined) return traits;
  return { statesOutputLimit: names.every((name) => !name.includes('*')), ...traits };
}

/** Values of {@link ModelTraits.reasoning} that a format supports. Values of other dialects are ignored. Default: all. */
const dialects: Readonly<Record<string, readonly string[]>> = {
  messages: ['adaptive', 'budget', 'thinking', 'none'],
  responses: ['effort', 'none'],
  'generate-content': ['level', 'budget', 'none'],
};

/**
 * Returns the traits of a model with those that the config states for it, which hold in every format of the channel: lists of what is refused add to
 * those of a format, all else takes the place of what was known. What the config states for one format comes last.
 */
export function withStated(known: ModelTraits, names: readonly string[], own: ModelTraits): ModelTraits {
  const { byFormat: ownFormats, ...everywhere } = statedTraits(names, own);
  if (known.byFormat === undefined && ownFormats === undefined) return { ...known, ...everywhere };
  const formats = new Set([...Object.keys(known.byFormat ?? {}), ...Object.keys(ownFormats ?? {})]);
  const byFormat = [...formats].map((format) => {
    const before = known.byFormat?.[format] ?? {};
    return [format, { ...before, ...inFormat(format, before, everywhere), ...ownFormats?.[format] }] as const;
  });
  return { ...known, ...everywhere, byFormat: Object.fromEntries(byFormat) };
}

/** Returns the traits for all formats as they apply to one format. */
function inFormat(format: string, before: ModelTraits, stated: ModelTraits): ModelTraits {
  const {
    formats: _,
    serverTools: __,
    functionTools: ___,
    reasoning,
    refuses,
    refusedMembers,
    ...rest
  } = stated;
  const hasDialect = reasoning !== undefined && dialects[format]?.includes(reasoning) !== false;
  return {
    ...rest,
    ...(hasDialect ? { reasoning } : {}),
    ...(refuses === undefined ? {} : { refuses: [...new Set([...(before.refuses ?? []), ...refuses])] }),
    ...(refusedMembers === undefined
      ? {}
      : { refusedMembers: [...(before.refusedMembers ?? []), ...refusedMembers] }),
  };
}

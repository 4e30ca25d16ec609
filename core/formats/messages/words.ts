/** Neutral names of what may be lost, as messages spells them. */
export const words: Readonly<Record<string, string>> = {
  'settings.reasoning.effort': 'output_config.effort',
  'settings.reasoning.budget': 'thinking.budget_tokens',
  'settings.reasoning.mode': 'thinking.type',
  'settings.reasoning.show': 'thinking.display',
  'settings.reasoning.display': 'thinking.display',
  cache: 'cache_control',
  'cache.ttl': 'cache_control.ttl',
  failed: 'is_error',
  proof: 'signature',
  schema: 'input_schema',
};

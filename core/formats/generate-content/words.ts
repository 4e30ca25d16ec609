/** Neutral names of what may be lost, as generateContent spells them. */
export const words: Readonly<Record<string, string>> = {
  'settings.reasoning.effort': 'generationConfig.thinkingConfig.thinkingLevel',
  'settings.reasoning.budget': 'generationConfig.thinkingConfig.thinkingBudget',
  'settings.reasoning.mode': 'generationConfig.thinkingConfig',
  'settings.reasoning.show': 'generationConfig.thinkingConfig.includeThoughts',
  'settings.responseFormat': 'generationConfig.responseMimeType',
  'settings.responseFormat.type': 'generationConfig.responseMimeType',
  tool_choice: 'toolConfig.functionCallingConfig',
  proof: 'thoughtSignature',
  schema: 'parameters',
};

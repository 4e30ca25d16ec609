import {
  both,
  has,
  isJson,
  isOneOf,
  objects,
  outside,
  unknownIn,
  valueAt,
  words,
  type Check,
} from './checks.ts';
import { functionSchema, geminiTakes, schemaAt } from './schemas.ts';
import type { Rule } from './table.ts';

const kinds = ['gemini', 'gemini-compatible', 'vertex'];
const wires = ['generate-content'];
const types =
  '@google/genai 1.x and 2.x, dist/genai.d.ts, `GenerateContentConfig`; https://ai.google.dev/api/generate-content';

/** Which call of the current turn says no signature. */
const unsigned: Check = ({ body }) => {
  const contents = objects(body['contents']);
  const start = contents.findLastIndex(
    ({ role, parts }) => role !== 'model' && objects(parts).some(({ text }) => text !== undefined),
  );
  for (const [index, { role, parts }] of contents.entries()) {
    if (index < start || role !== 'model') continue;
    const call = objects(parts).find(({ functionCall }) => functionCall !== undefined);
    if (call !== undefined && call['thoughtSignature'] === undefined) return `contents[${index}]`;
  }
  return undefined;
};

const strangeRole: Check = ({ body }) => {
  const index = objects(body['contents']).findIndex(
    ({ role }) => role !== undefined && !['user', 'model', 'function'].includes(String(role)),
  );
  return index < 0 ? undefined : `contents[${index}].role`;
};

const foreignPart: Check = ({ body }) => {
  const parts = objects(body['contents']).flatMap(({ parts: own }) => objects(own));
  const known: ReadonlySet<string> = new Set([
    'text',
    'inlineData',
    'fileData',
    'functionCall',
    'functionResponse',
    'executableCode',
    'codeExecutionResult',
    'thought',
    'thoughtSignature',
    'videoMetadata',
    'mediaResolution',
    'partMetadata',
    'toolCall',
    'toolResponse',
  ]);
  return parts.flatMap((part) => Object.keys(part)).find((name) => !known.has(name));
};

const bothThinking: Check = ({ body }) => {
  const config = valueAt(body, 'generationConfig.thinkingConfig');
  return isJson(config) && config['thinkingBudget'] !== undefined && config['thinkingLevel'] !== undefined
    ? 'generationConfig.thinkingConfig'
    : undefined;
};

/** Gemini, at Google AI and on Vertex AI. */
export const googleRules: readonly Rule[] = [
  {
    kinds,
    wires,
    refuses: unknownIn([
      'contents',
      'systemInstruction',
      'tools',
      'toolConfig',
      'safetySettings',
      'generationConfig',
      'cachedContent',
      'labels',
      'store',
      'serviceTier',
      'continuationToken',
      'model',
    ]),
    says: 'Invalid JSON payload received. Unknown name "$": Cannot find field.',
    source: types,
  },
  {
    kinds,
    wires,
    refuses: unknownIn(
      words(`
    temperature topP topK candidateCount maxOutputTokens stopSequences seed presencePenalty frequencyPenalty
    responseMimeType responseSchema responseJsonSchema _responseJsonSchema responseModalities responseLogprobs logprobs
    thinkingConfig speechConfig imageConfig mediaResolution audioTimestamp enableEnhancedCivicAnswers routingConfig
    responseFormat
  `),
      'generationConfig',
    ),
    says: 'Invalid JSON payload received. Unknown name "$" at \'generation_config\': Cannot find field.',
    source: types,
  },
  {
    kinds,
    wires,
    refuses: foreignPart,
    says: 'Unknown name "$" at \'contents[0].parts[0]\': Cannot find field.',
    source: types,
  },
  {
    kinds,
    wires,
    refuses: schemaAt('generationConfig.responseSchema', geminiTakes),
    says: 'Unknown name "$" at \'generation_config.response_schema\': Cannot find field.',
    source: 'https://ai.google.dev/api/caching#Schema',
  },
  {
    kinds,
    wires,
    refuses: functionSchema(geminiTakes),
    says: 'Unknown name "$" at \'tools[0].function_declarations[0].parameters\': Cannot find field.',
    source: 'https://ai.google.dev/api/caching#Schema',
  },
  {
    kinds,
    wires,
    refuses: outside('generationConfig.temperature', 0, 2),
    says: '$ must be in the range [0, 2].',
    source: types,
  },
  {
    kinds,
    wires,
    refuses: strangeRole,
    says: 'Please use a valid role: user, model. ($)',
    source: 'https://ai.google.dev/api/caching#Content',
  },
  {
    kinds,
    wires,
    refuses: bothThinking,
    says: '$: You can only set only one of thinking budget and thinking level.',
    source: 'https://ai.google.dev/gemini-api/docs/thinking',
  },
  {
    kinds,
    wires,
    models: ['gemini-2*'],
    refuses: has('generationConfig.thinkingConfig.thinkingLevel'),
    says: 'Thinking level is not supported for this model.',
    source: 'https://ai.google.dev/gemini-api/docs/thinking',
  },
  {
    kinds,
    wires,
    models: ['gemini-2.5-pro*', 'gemini-3*-pro*'],
    refuses: isOneOf('generationConfig.thinkingConfig.thinkingBudget', [0]),
    says: 'Budget 0 is invalid. This model only works in thinking mode.',
    source: 'https://ai.google.dev/gemini-api/docs/thinking#set-budget',
  },
  {
    kinds,
    wires,
    models: ['gemini-2.5-*', 'gemini-3*'],
    refuses: has('generationConfig.presencePenalty', 'generationConfig.frequencyPenalty'),
    says: 'Penalty is not enabled for this model',
    source: 'github:vercel/ai#8943; github:google-gemini/cookbook#1290',
  },
  {
    kinds,
    wires,
    models: ['gemini-2*'],
    refuses: both(isOneOf('generationConfig.responseMimeType', ['application/json']), has('tools')),
    says: "Function calling with a response mime type: 'application/json' is unsupported",
    source:
      'https://ai.google.dev/gemini-api/docs/structured-output: tools together with structured output from Gemini 3 on',
  },
  {
    kinds,
    wires,
    models: ['gemini-3*'],
    refuses: unsigned,
    says: 'Function call is missing a thought_signature in functionCall parts ($).',
    source: 'https://ai.google.dev/gemini-api/docs/thought-signatures',
  },
];

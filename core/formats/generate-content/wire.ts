/** Field names of generateContent in camelCase and snake_case, and constants and functions to keep unknown fields. */
import type { EmbedPurpose } from '../../model/embed.ts';
import type { JsonObject, MutableObject } from '../../model/json.ts';
import { setOf } from '../_shared/fields.ts';
import { extrasOf } from '../_shared/extra.ts';

/** The name under which this format keeps what only it knows. */
export const formatName = 'generate-content';

/** {@link extrasOf} */
export const { own, withExtra, leftovers } = extrasOf(formatName);

/** Purposes of embeddings, neutral and in this format. */
export const purposes: readonly (readonly [EmbedPurpose, string])[] = [
  ['query', 'RETRIEVAL_QUERY'],
  ['document', 'RETRIEVAL_DOCUMENT'],
  ['similarity', 'SEMANTIC_SIMILARITY'],
  ['classification', 'CLASSIFICATION'],
  ['clustering', 'CLUSTERING'],
  ['question', 'QUESTION_ANSWERING'],
  ['fact', 'FACT_VERIFICATION'],
  ['code-query', 'CODE_RETRIEVAL_QUERY'],
];

/** The field names of one structure. Proto JSON lets every one of them be written in snake_case too. */
interface Fields {
  readonly known: ReadonlySet<string>;
  readonly snake: ReadonlyMap<string, string>;
}

function fields(list: string): Fields {
  const known = setOf(list);
  const snake = new Map<string, string>();
  for (const camel of known) {
    const spelled = camel.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    if (spelled !== camel) snake.set(spelled, camel);
  }
  return { known, snake };
}

/** Fields of a part that hold its data: exactly one of them in a legal part. */
export const dataFields = [
  'text',
  'inlineData',
  'fileData',
  'functionCall',
  'functionResponse',
  'executableCode',
  'codeExecutionResult',
  'toolCall',
  'toolResponse',
  'audioTranscription',
] as const;

/** The structures of requests, most of them by the name of the field that holds one. */
export const structures = {
  request: fields(`
    model contents systemInstruction tools toolConfig safetySettings cachedContent generationConfig labels
    store serviceTier continuationToken
  `),
  countRequest: fields('contents generateContentRequest'),
  embedRequest: fields('model content taskType title outputDimensionality embedContentConfig'),
  generationConfig: fields(`
    temperature topP topK candidateCount maxOutputTokens stopSequences seed presencePenalty
    frequencyPenalty responseMimeType responseSchema responseJsonSchema responseModalities
    responseLogprobs logprobs thinkingConfig speechConfig imageConfig mediaResolution audioTimestamp
    enableEnhancedCivicAnswers enableAffectiveDialog routingConfig modelSelectionConfig
    audioTranscriptionConfig translationConfig responseFormat
  `),
  thinkingConfig: fields('includeThoughts thinkingBudget thinkingLevel'),
  content: fields('role parts'),
  part: fields(`
    ${dataFields.join(' ')}
    thought thoughtSignature videoMetadata mediaResolution partMetadata mediaProcessing speechMetadata
  `),
  inlineData: fields('mimeType data displayName'),
  fileData: fields('mimeType fileUri displayName'),
  functionCall: fields('id name args partialArgs willContinue'),
  functionResponse: fields('id name response parts scheduling willContinue'),
  /** An entry of `tools`: a field for each kind. */
  tools: fields(`
    functionDeclarations googleSearch googleSearchRetrieval codeExecution urlContext googleMaps fileSearch
    computerUse mcpServers enterpriseWebSearch exaAiSearch parallelAiSearch
  `),
  functionDeclaration: fields(
    'name description parameters parametersJsonSchema response responseJsonSchema behavior',
  ),
  toolConfig: fields('functionCallingConfig retrievalConfig includeServerSideToolInvocations'),
  functionCallingConfig: fields('mode allowedFunctionNames streamFunctionCallArguments'),
};

/** Returns the object with its known fields in camelCase; the same object when nothing was spelled otherwise. */
export function official(object: JsonObject, structure: keyof typeof structures): JsonObject {
  const { snake } = structures[structure];
  let strange = false;
  for (const key in object) strange ||= snake.has(key);
  if (!strange) return object;
  const renamed: MutableObject = {};
  for (const key of Object.keys(object)) {
    const camel = snake.get(key);
    if (camel === undefined) renamed[key] = object[key];
    else if (!Object.hasOwn(object, camel)) renamed[camel] = object[key];
  }
  return renamed;
}

/** Returns the part of an object that is given: `null` means absent, and is dropped for the fields that the gateway reads. */
export function pick(object: JsonObject, names: Iterable<string>): MutableObject {
  const picked: MutableObject = {};
  for (const field of names) {
    const value = object[field];
    if (value !== undefined && value !== null) picked[field] = value;
  }
  return picked;
}

/** Keys of a chunk that are decoded as events. */
export const chunkFields = setOf('candidates usageMetadata modelVersion responseId');

/** Keys of which every reply, and the first chunk of every stream, has at least one. */
export const replySigns: readonly string[] = [...chunkFields, 'promptFeedback', 'error'];

/** Keys of a candidate that are decoded as events. */
export const candidateFields = setOf('content finishReason index');

/**
 * Extras of reply events, beside plain names, which are fields of the candidate:
 * `response.NAME` a field of the chunk, `part.NAME` of the part, `functionCall.NAME` and the like of an object in the part.
 * `$more` marks that the next event was in the same chunk, `$content` keeps an empty content, `$noCandidate` and `$noReason` mark absent
 * members.
 */
export const levels = { chunk: 'response.', part: 'part.' } as const;

/** Most blocks of one reply. */
export const blockLimit = 1024;

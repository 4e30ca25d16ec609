import type { JsonObject, MutableObject } from '../../model/json.ts';
import { setOf } from '../_shared/fields.ts';
import { extrasOf } from '../_shared/extra.ts';

/** The name under which this format keeps what only it knows. */
export const formatName = 'generate-content';

/** {@link extrasOf} */
export const { own, withExtra, leftovers } = extrasOf(formatName);

/** The field names of one structure. Proto JSON lets every one of them be written in snake_case too. */
export interface Fields {
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

/** Fields of a request. */
export const requestFields = fields(`
  model contents systemInstruction tools toolConfig safetySettings cachedContent generationConfig labels
  store serviceTier continuationToken
`);
/** Fields of `generationConfig`. */
export const configFields = fields(`
  temperature topP topK candidateCount maxOutputTokens stopSequences seed presencePenalty
  frequencyPenalty responseMimeType responseSchema responseJsonSchema responseModalities
  responseLogprobs logprobs thinkingConfig speechConfig imageConfig mediaResolution audioTimestamp
  enableEnhancedCivicAnswers enableAffectiveDialog routingConfig modelSelectionConfig
  audioTranscriptionConfig translationConfig responseFormat
`);
/** Fields of `thinkingConfig`. */
export const thinkingFields = fields('includeThoughts thinkingBudget thinkingLevel');
/** Fields of a request for an embedding. */
export const embedFields = fields('model content taskType title outputDimensionality embedContentConfig');
/** Fields of a content. */
export const contentFields = fields('role parts');

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
/** Fields of a part that say something about its data. */
const metaFields =
  'thought thoughtSignature videoMetadata mediaResolution partMetadata mediaProcessing speechMetadata';
/** Fields of a part. */
export const partFields = fields([...dataFields, metaFields].join(' '));
/** Fields of `inlineData`. */
export const inlineFields = fields('mimeType data displayName');
/** Fields of `fileData`. */
export const fileFields = fields('mimeType fileUri displayName');
/** Fields of `functionCall`. */
export const callFields = fields('id name args partialArgs willContinue');
/** Fields of `functionResponse`. */
export const resultFields = fields('id name response parts scheduling willContinue');
/** Fields of a tools entry, one for each kind of tool. */
export const toolFields = fields(`
  functionDeclarations googleSearch googleSearchRetrieval codeExecution urlContext googleMaps fileSearch
  computerUse mcpServers enterpriseWebSearch exaAiSearch parallelAiSearch
`);
/** Fields of a function declaration. */
export const declarationFields = fields(
  'name description parameters parametersJsonSchema response responseJsonSchema behavior',
);
/** Fields of `toolConfig`. */
export const toolConfigFields = fields(
  'functionCallingConfig retrievalConfig includeServerSideToolInvocations',
);
/** Fields of `functionCallingConfig`. */
export const callingFields = fields('mode allowedFunctionNames streamFunctionCallArguments');
/** Fields of a countTokens request. */
export const countFields = fields('contents generateContentRequest');

/** The object with its known fields in camelCase; the same object when nothing was spelled otherwise. */
export function official(object: JsonObject, { snake }: Fields): JsonObject {
  let strange = false;
  for (const key in object) {
    if (!snake.has(key)) continue;
    strange = true;
    break;
  }
  if (!strange) return object;
  const renamed: MutableObject = {};
  for (const key of Object.keys(object)) {
    const camel = snake.get(key);
    if (camel === undefined) renamed[key] = object[key];
    else if (!Object.hasOwn(object, camel)) renamed[camel] = object[key];
  }
  return renamed;
}

/** The part of an object that is given: `null` means absent, and is dropped for the fields that the gateway reads. */
export function pick(object: JsonObject, names: Iterable<string>): MutableObject {
  const picked: MutableObject = {};
  for (const field of names) {
    const value = object[field];
    if (value !== undefined && value !== null) picked[field] = value;
  }
  return picked;
}

/** Keys of a chunk that have an event, or a member of one. */
export const chunkFields = setOf('candidates usageMetadata modelVersion responseId');

/** Keys of which every reply has one, and so has the first chunk of each. */
export const replySigns: readonly string[] = [...chunkFields, 'promptFeedback', 'error'];

/** Keys of a candidate that have an event. */
export const candidateFields = setOf('content finishReason index');

/**
 * Extras of reply events, beside plain names, which are fields of the candidate:
 * `response.NAME` a field of the chunk, `part.NAME` of the part, `functionCall.NAME` and the like of an object in the part.
 * `$more` says that the next event was in the same chunk, `$content` keeps a content that held nothing, `$noCandidate` and `$noReason`
 * what was absent.
 */
export const levels = { chunk: 'response.', part: 'part.' } as const;

/** Most blocks of one reply. */
export const blockLimit = 1024;

/** Keys of a chunk that have an event, or a member of one. */
export const chunkFields: ReadonlySet<string> = new Set([
  'candidates',
  'usageMetadata',
  'modelVersion',
  'responseId',
]);

/** Keys of which every reply has one, and so has the first chunk of each. */
export const replySigns: readonly string[] = [...chunkFields, 'promptFeedback', 'error'];

/** Keys of a candidate that have an event. */
export const candidateFields: ReadonlySet<string> = new Set(['content', 'finishReason', 'index']);

/**
 * Extras of reply events, beside plain names, which are fields of the candidate:
 * `response.NAME` a field of the chunk, `part.NAME` of the part, `functionCall.NAME` and the like of an object in the part.
 * `$more` says that the next event was in the same chunk, `$content` keeps a content that held nothing, `$noCandidate` and `$noReason`
 * what was absent.
 */
export const levels = { chunk: 'response.', part: 'part.' } as const;

/** Most blocks of one reply. */
export const blockLimit = 1024;

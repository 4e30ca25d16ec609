/** The name of the format, and of what only it knows. */
export const formatName = 'ocr';

/** Below a provider's base URL. */
export const path = '/ocr';

/** Maximum number of pages of a document: https://docs.mistral.ai/studio-api/document-processing/basic_ocr */
export const mostPages = 1_000;

/** The name under which this format keeps what only it knows. */
export const formatName = 'rerank';

/** Below a provider's base URL. */
export const path = '/rerank';

/** Most documents of one request. */
export const mostDocuments = 10_000;

/** Most names of fields: each is looked for in every document. */
export const mostFields = 100;

import type * as Http from 'node:http';

/**
 * The used parts of Node's HTTP module, without an `import`. An import of `node:http` reads all its exports, and so makes Node load a second client with
 * `fetch` and WebSocket, which costs 34 milliseconds of CPU and 14 MB in every process.
 */
const http: typeof Http = process.getBuiltinModule('node:http');

/** Exports of `node:http` with the same names. */
export const { Agent, createServer, request, ServerResponse, STATUS_CODES } = http;

/** Koa's router, in the form that loads less. */
import { createRequire } from 'node:module';
import type * as Koa from '@koa/router';

const koa = createRequire(import.meta.url)('@koa/router') as typeof Koa;

/** A router of Koa's. It is loaded as CommonJS: its other form imports `node:http`, of which `node-http.ts` says what that takes. */
export function createRouter(): Koa.Router {
  return new koa.Router();
}

import type { Context } from 'koa';
import { expect, test } from 'vitest';
import { addRoute, createRouter } from '../../../core/front/router.ts';

type Router = ReturnType<typeof createRouter>;

const paths = [
  '/v1/models',
  '/v1/models/*model',
  '/v1/responses/:id',
  '/v1/responses/:id/input_items',
  '/v1beta/models/*model\\:generateContent',
  '/model/:model/converse',
  '/v1/files{/:id}',
];
const requests = [
  '/v1/models',
  '/v1/models/',
  '/V1/Models/a',
  '/v1/models/a/b%2Fc',
  '/v1/responses/resp_1',
  '/v1/responses/resp_1/input_items',
  '/v1beta/models/models/m:generateContent',
  '/model/eu.a%3A0/converse',
  '/v1/files',
  '/v1/files/%zz',
  '/v1/nothing',
];

/** Returns the paths, numbers of the handlers and parameters that a router finds for all requests, with each method. */
async function foundBy(router: Router): Promise<unknown> {
  const found: unknown[] = [];
  for (const method of ['GET', 'HEAD', 'POST'])
    for (const path of requests) {
      const ctx = { method, path, found: [], request: {} } as unknown as Context & { found: unknown[] };
      // oxlint-disable-next-line no-await-in-loop -- the handlers of each request run in order
      await router.routes()(ctx as never, async () => {});
      found.push([method, path, ctx.found]);
    }
  return found;
}

function routerOf(add: (router: Router, method: string, path: string, number: number) => void): Router {
  const router = createRouter();
  for (const [index, path] of [...paths, ...paths].entries())
    add(router, index % 3 === 0 ? 'POST' : 'GET', path, index);
  return router;
}

const handler = (number: number) => (ctx: object, next: () => Promise<unknown>) => {
  const { found, params } = ctx as { readonly found: unknown[]; readonly params: unknown };
  found.push([number, params]);
  return next();
};

test('routes whose patterns are compiled already match as those that Koa compiles', async () => {
  const own = () =>
    routerOf((router, method, path, number) => {
      addRoute(router, { method, path }, handler(number));
    });
  const koas = routerOf((router, method, path, number) => {
    router.register(path, [method], handler(number));
  });
  const expected = await foundBy(koas);
  expect(JSON.stringify(expected)).toContain('a/b');
  expect(await foundBy(own())).toEqual(expected);
  expect(await foundBy(own())).toEqual(expected);
});

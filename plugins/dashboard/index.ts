import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { definePlugin } from 'sluice';
import { answerWith, nothingBuilt, pageHeaders } from './answer.ts';
import { readPage, type Page } from './page.ts';

/** Serves the dashboard at `/dashboard`: keys, usage, channels and a playground. It uses only the admin API. */
export default definePlugin({
  name: 'dashboard',
  stage: 'observe',
  options: z.strictObject({
    /** Folder of the built page. Default: `dist` beside this plugin, which `npm run build` creates. */
    folder: z
      .string()
      .min(1)
      .default(fileURLToPath(new URL('./dist/', import.meta.url))),
  }),
  setup({ folder }, { route, log }) {
    let page: Page | undefined;
    // Read on first use, so that it costs nothing when nobody opens the page. Retried until the page is built.
    const load = async (): Promise<Page | undefined> => (page ??= await readPage(folder));

    route('GET', '/dashboard{/*path}', async function dashboard(ctx) {
      try {
        answerWith(await load(), ctx);
      } catch (error) {
        log.error({ error }, 'the built page cannot be read');
        ctx.status = 500;
        ctx.set(pageHeaders('text/html; charset=utf-8'));
        ctx.body = nothingBuilt;
      }
    });
    return (call, next) => next(call);
  },
});

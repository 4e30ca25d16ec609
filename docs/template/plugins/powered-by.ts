import { addReplyHeaders, definePlugin } from 'sluice';
import { z } from 'zod';

/** Replies tell by whom they were served. A file in this folder runs by being here, under its own name. */
export default definePlugin({
  name: 'powered-by',
  stage: 'observe',
  options: z.object({
    /** What callers read in the header `x-powered-by`. */
    name: z.string().min(1).default('my gateway'),
  }),
  setup({ name }) {
    return function poweredBy(call, next) {
      addReplyHeaders(call, { 'x-powered-by': name });
      return next(call);
    };
  },
});

import { tap } from 'rxjs';
import { definePlugin, type Usage } from 'sluice';

/** A plugin that keeps the usage of the last call that told any. */
export class UsageListener {
  last: Usage | undefined;

  readonly plugin = definePlugin({
    name: 'listener',
    stage: 'admit',
    reads: 'usage',
    setup: () => async (call, next) =>
      (await next(call)).pipe(
        tap((event) => {
          if (event.type === 'usage') this.last = event.usage;
        }),
      ),
  })();
}

import type { InternalTools } from 'sluice/internal';
import type { Audit } from './audit.ts';
import type { Handlers } from './serve.ts';

/** Returns the processes that serve: how they stand, how much this one has to do, and the wish for a reload. */
export function processHandlers(
  { processes, overload, upkeep }: Pick<InternalTools, 'processes' | 'overload' | 'upkeep'>,
  audit: Audit,
): Handlers<'status' | 'reload'> {
  return {
    async status() {
      const { running, waiting, refused, bodies, lag, memory, strain } = overload;
      return {
        ...(await processes.status()),
        worker: processes.worker,
        kept: upkeep.all(),
        load: { running, waiting, refused, bodies, lag, memory, strain },
      };
    },
    async reload(request) {
      const outcome = await processes.reload();
      const after = { ok: outcome.ok, problems: [...outcome.problems] };
      await audit.note(request, { action: 'reload', after });
      return outcome;
    },
  };
}

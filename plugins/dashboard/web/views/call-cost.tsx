/** Cost of a call, from the usage log, which has it some moments after the call has ended. */
import { useQuery } from '@tanstack/react-query';
import { api, ApiError } from '../parts/api.ts';
import { addressOf } from '../parts/router.ts';
import { count, money } from '../parts/text.ts';

/** Number of reads of the usage log for a call that it does not have yet, and their interval in milliseconds. */
const tries = 8;
const pause = 750;

/** Shows tokens and cost of the call with this id, with a link to its details. */
export function CallCost({ id }: { readonly id: string }) {
  const call = useQuery({
    queryKey: ['call-cost', id],
    queryFn: () => api.call(id),
    retry: (failures, error) => failures < tries && error instanceof ApiError && error.status === 404,
    retryDelay: pause,
  });
  if (call.isPending) return <span className="small muted">Cost: being settled…</span>;
  if (call.isError) return <span className="small muted">The usage log does not show this call.</span>;
  const { input, output, microDollars } = call.data;
  return (
    <span className="small" data-cost>
      {count(input ?? 0)} tokens in, {count(output ?? 0)} out,{' '}
      {microDollars === undefined ? 'no price' : money(microDollars)} ·{' '}
      <a href={addressOf('usage', { call: id })}>Details</a>
    </span>
  );
}

import { useInfiniteQuery } from '@tanstack/react-query';
import type { OwnerView } from '../../../admin/schemas/index.ts';
import { api } from '../parts/api.ts';
import { KeyState } from '../parts/badges.tsx';
import { addressOf } from '../parts/router.ts';
import { Await, More } from '../parts/states.tsx';
import { ago } from '../parts/text.ts';

/** The newest API keys of a team, member or service account. */
export function OwnerKeys({ owner }: { readonly owner: OwnerView }) {
  const keys = useInfiniteQuery({
    queryKey: ['keys', 'of', owner.id],
    queryFn: ({ pageParam }) => api.keys({ owner: owner.id, limit: 20 }, pageParam),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next,
  });
  return (
    <section className="stack" aria-label="API keys">
      <h3>API keys</h3>
      <Await query={keys} what="the API keys">
        {({ pages }) => {
          const all = pages.flatMap((page) => page.keys);
          return (
            <>
              <ul className="attempts">
                {all.map(({ id, name, state, lastUsedAt }) => (
                  <li key={id}>
                    <a href={addressOf('keys', { owner: owner.id, key: id })}>{name}</a>
                    <KeyState state={state} />
                    <span className="muted small">last used {ago(lastUsedAt)}</span>
                  </li>
                ))}
              </ul>
              {all.length === 0 && <p className="muted">None yet.</p>}
              <More query={keys} count={all.length} one="key" many="keys" />
            </>
          );
        }}
      </Await>
      <p className="row">
        <a href={addressOf('keys', { owner: owner.id })}>Show them in the list of API keys</a>
      </p>
    </section>
  );
}

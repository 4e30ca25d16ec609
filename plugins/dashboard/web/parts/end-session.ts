/** Ends a session in this tab. */
import type { QueryClient } from '@tanstack/react-query';

/** True for data that belongs to no actor: the login shows it. */
const isPublic = (name: unknown): boolean => name === 'session' || name === 'sign-in';

/** Shows the login, and forgets what the actor has read and sent, because another one may sign in next. */
export function endSession(queries: QueryClient): void {
  queries.setQueryData(['session'], null);
  queries.removeQueries({ predicate: ({ queryKey: [name] }) => !isPublic(name) });
  queries.getMutationCache().clear();
}

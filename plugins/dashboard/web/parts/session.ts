/** Who has signed in, for views that show less to some. */
import { useQuery } from '@tanstack/react-query';
import type { RouteName } from '../../../admin/routes.ts';
import type { Session } from '../../../admin/schemas/index.ts';
import { api } from './api.ts';

/** Returns the session; null or undefined outside of one. */
export function useSession(): Session | null | undefined {
  return useQuery({ queryKey: ['session'], queryFn: api.session, staleTime: Infinity }).data;
}

/** Returns true when the session may use an operation of the admin API. */
export function useMay(operation: RouteName): boolean {
  return useSession()?.may.includes(operation) === true;
}

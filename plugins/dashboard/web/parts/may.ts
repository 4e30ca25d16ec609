/** Permissions of the actor who has signed in. */
import { useQuery } from '@tanstack/react-query';
import type { RouteName } from '../../../admin/routes.ts';
import { api } from './api.ts';

/** An operation of the admin API, or a route of a plugin: `GET /api/alerts`. */
export type Operation = RouteName | `${'GET' | 'POST'} /${string}`;

/** Returns true when the actor may do this, and the gateway has it. */
export function useMay(operation: Operation): boolean {
  const { data } = useQuery({ queryKey: ['session'], queryFn: api.session, staleTime: Infinity });
  return data?.may.includes(operation) === true;
}

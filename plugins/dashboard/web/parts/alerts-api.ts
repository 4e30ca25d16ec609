/** Calls of the admin API about alerts. */
import type { AlertsView } from '../../../alerts/view.ts';
import { ask } from './api.ts';

/** Every function rejects with an `ApiError`. */
export const alertsApi = {
  read: () => ask<AlertsView>('GET', '/api/alerts'),
  acknowledge: (id: string) => ask<AlertsView>('POST', '/api/alerts/acknowledge', { id }),
  /** 0 minutes end it. */
  mute: (subject: { readonly id?: string; readonly kind?: string }, minutes: number) =>
    ask<AlertsView>('POST', '/api/alerts/mute', { ...subject, minutes }),
  test: (destination: string) =>
    ask<{ readonly ok: boolean; readonly error?: string }>('POST', '/api/alerts/test', { destination }),
};

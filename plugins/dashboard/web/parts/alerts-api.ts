/** Calls of the admin API about alerts. */
import type { AlertsView } from '../../../alerts/view.ts';
import { sendRequest } from './api.ts';

/** Every function rejects with an `ApiError`. */
export const alertsApi = {
  read: () => sendRequest<AlertsView>('GET', '/api/alerts'),
  acknowledge: (id: string) => sendRequest<AlertsView>('POST', '/api/alerts/acknowledge', { id }),
  /** 0 minutes end it. */
  mute: (subject: { readonly id?: string; readonly kind?: string }, minutes: number) =>
    sendRequest<AlertsView>('POST', '/api/alerts/mute', { ...subject, minutes }),
  test: (destination: string) =>
    sendRequest<{ readonly ok: boolean; readonly error?: string }>('POST', '/api/alerts/test', {
      destination,
    }),
};

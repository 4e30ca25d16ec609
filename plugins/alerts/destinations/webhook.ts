/** Sends alerts as signed webhooks: https://github.com/standard-webhooks/standard-webhooks, version 1.0.0. */
import { createHmac } from 'node:crypto';
import type { JsonValue } from 'sluice';
import type { Item } from '../alert.ts';
import type { Destination } from '../options.ts';
import type { DestinationTools, OpenDestination } from './destination.ts';
import { checkStatus, linkOf } from './text.ts';

/** Opens a webhook. The body is `{ type, timestamp, data: { alerts, more } }`, and `webhook-id` stays the same over all tries. */
export function openWebhook(
  { url, secret }: Extract<Destination, { type: 'webhook' }>,
  { http, url: base }: DestinationTools,
): OpenDestination {
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  return {
    async send(message, { timeout, signal }) {
      const body = JSON.stringify({
        type: message.items.some(({ state }) => state === 'firing') ? 'alert.firing' : 'alert.resolved',
        timestamp: new Date(message.createdAt).toISOString(),
        data: { alerts: message.items.map((item) => dataOf(item, base)), more: message.more },
      });
      const timestamp = Math.floor(Date.now() / 1_000);
      const headers = {
        'content-type': 'application/json',
        'webhook-id': message.id,
        'webhook-timestamp': String(timestamp),
        'webhook-signature': `v1,${createHmac('sha256', key).update(`${message.id}.${timestamp}.${body}`).digest('base64')}`,
      };
      const { status } = await http.ask({
        url,
        method: 'POST',
        headers,
        body,
        timeout,
        limit: 64 * 1024,
        signal,
      });
      checkStatus(status);
    },
  };
}

function dataOf(item: Item, base: string | undefined): JsonValue {
  const { id, kind, subject, severity, state, text, teams = [], at } = item;
  const link = linkOf(item, base);
  return {
    id,
    kind,
    subject,
    severity,
    state,
    text,
    teams,
    at: new Date(at).toISOString(),
    ...(link === undefined ? {} : { link }),
  };
}

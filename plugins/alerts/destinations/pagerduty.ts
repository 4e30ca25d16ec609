/** Opens and closes alerts at PagerDuty, by its Events API v2: https://developer.pagerduty.com/docs/events-api-v2/trigger-events/. */
import { createHash } from 'node:crypto';
import type { Destination } from '../options.ts';
import type { DestinationTools, OpenDestination } from './destination.ts';
import { checkStatus, cut, linkOf } from './text.ts';

/** Maximum number of characters of a summary. */
const maxSummary = 1_024;

/** Opens an integration. One event for each alert, because PagerDuty itself groups them. */
export function openPagerDuty(
  { key, url }: Extract<Destination, { type: 'pagerduty' }>,
  { http, url: base }: DestinationTools,
): OpenDestination {
  return {
    takesOne: true,
    async send({ items }, { timeout, signal }) {
      for (const item of items) {
        const link = linkOf(item, base);
        const json = {
          routing_key: key,
          event_action: item.state === 'firing' ? 'trigger' : 'resolve',
          // A digest, because an id may be longer than PagerDuty takes.
          dedup_key: createHash('sha256').update(item.id).digest('hex'),
          payload: {
            summary: cut(item.text, maxSummary),
            severity: item.severity,
            source: cut(item.subject, 255),
            timestamp: new Date(item.at).toISOString(),
            class: item.kind,
          },
          client: 'Sluice',
          ...(link === undefined ? {} : { client_url: link, links: [{ href: link, text: 'Show' }] }),
        };
        // oxlint-disable-next-line no-await-in-loop -- in their order
        const { status } = await http.ask({ url, json, timeout, limit: 64 * 1024, signal });
        checkStatus(status);
      }
    },
  };
}

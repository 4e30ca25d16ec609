/** Commands about usage, the audit log and alerts. */
import type { Row } from './row.ts';

const alertColumns = ['id', 'kind', 'severity', 'state', 'since', 'text'];

/** The commands. */
export const watchingRows: readonly Row[] = [
  {
    group: 'usage',
    verb: '',
    summary: 'Sums usage. Default: the last 30 days (--since), by day (--by)',
    operation: 'sumUsage',
    defaults: { by: 'day', since: '30d' },
    shown: {
      list: 'sums',
      columns: [
        'group',
        'name',
        'calls',
        'failed',
        'refused',
        'input',
        'output',
        'microDollars',
        'chargedMicroDollars',
      ],
    },
  },
  {
    group: 'usage',
    verb: 'list',
    summary: 'Lists calls of the usage log, newest first',
    operation: 'listUsage',
    shown: {
      list: 'records',
      columns: [
        'id',
        'at',
        'keyName',
        'teamName',
        'model',
        'channel',
        'status',
        'ms',
        'input',
        'output',
        'microDollars',
        'chargedMicroDollars',
      ],
    },
  },
  {
    group: 'usage',
    verb: 'show',
    summary: 'Shows one call',
    operation: 'findUsage',
    words: [{ name: 'CALL', field: 'id' }],
  },
  {
    group: 'usage',
    verb: 'export',
    summary: 'Writes the usage log as CSV to standard output, oldest first',
    operation: 'exportUsage',
  },
  {
    group: 'audit',
    verb: 'list',
    summary: 'Lists the audit log, newest first',
    operation: 'listAudit',
    shown: { list: 'entries', columns: ['at', 'actor.name', 'action', 'target', 'organisation', 'ip'] },
  },
  {
    group: 'alert',
    verb: 'list',
    summary: 'Lists alerts, newest first',
    operation: { method: 'GET', path: '/api/alerts' },
    shown: { list: 'alerts', columns: alertColumns },
  },
  {
    group: 'alert',
    verb: 'destinations',
    summary: 'Lists the destinations of alerts with the result of the last delivery',
    operation: { method: 'GET', path: '/api/alerts' },
    shown: { list: 'destinations', columns: ['name', 'waiting', 'last'] },
  },
  {
    group: 'alert',
    verb: 'test',
    summary: 'Sends a test alert to a destination',
    operation: {
      method: 'POST',
      path: '/api/alerts/test',
      body: { properties: { destination: { type: 'string' } } },
    },
    words: [{ name: 'DESTINATION', field: 'destination' }],
  },
  {
    group: 'alert',
    verb: 'acknowledge',
    summary: 'Acknowledges an alert: somebody takes care of it',
    operation: {
      method: 'POST',
      path: '/api/alerts/acknowledge',
      body: { properties: { id: { type: 'string' } } },
    },
    words: [{ name: 'ALERT', field: 'id' }],
    shown: { says: 'Acknowledged the alert.' },
  },
  {
    group: 'alert',
    verb: 'mute',
    summary: 'Mutes an alert (--id) or all alerts of a kind (--kind) for --minutes; 0 unmutes',
    operation: {
      method: 'POST',
      path: '/api/alerts/mute',
      body: {
        properties: {
          id: { type: 'string', description: 'id of an alert' },
          kind: { type: 'string', description: 'kind of alerts, such as budget' },
          minutes: { type: 'number', description: 'duration in minutes; 0 unmutes' },
        },
        required: ['minutes'],
      },
    },
    shown: { says: 'Changed the mutes.' },
  },
];

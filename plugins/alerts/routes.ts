/** Routes for administrators: the list of alerts, acknowledge, mute, and a test of a destination. */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { GatewayError, type JsonObject, type PluginTools, type RouteContext } from 'sluice';
import { kinds, limits, type Item } from './alert.ts';
import type { AlertsOptions } from './options.ts';
import { createView } from './view.ts';
import type { AlertWatch } from './watch.ts';

/** Maximum number of characters of a request. */
const maxBody = 8 * 1_024;

const named = z.strictObject({ id: z.string().min(1).max(2_000) });
const testing = z.strictObject({ destination: z.string().min(1).max(40) });
const muting = z
  .strictObject({
    id: z.string().min(1).max(2_000).optional(),
    kind: z.enum(kinds).optional(),
    /** 0 ends it. */
    minutes: z.number().min(0).max(43_200),
  })
  .refine(({ id, kind }) => (id === undefined) !== (kind === undefined), 'Give an "id" or a "kind".');

/** Parts that the routes need. */
interface RouteParts
  extends Pick<PluginTools, 'adminRoute' | 'log'>, Pick<AlertWatch, 'state' | 'deliveries'> {
  readonly viewOf: ReturnType<typeof createView>;
}

const records = { records: true } as const;

/** Adds the routes. */
export function addRoutes(
  { adminRoute, log }: Pick<PluginTools, 'adminRoute' | 'log'>,
  { state, deliveries }: AlertWatch,
  options: AlertsOptions,
): void {
  const viewOf = createView(options);
  const parts: RouteParts = { adminRoute, log, state, deliveries, viewOf };
  adminRoute('GET', '/api/alerts', async (ctx) => {
    ctx.body = viewOf(await state.read());
  });
  addTesting(parts);
  addAcknowledging(parts);
  addMuting(parts);
}

/** Adds the route that sends a test to a destination. */
function addTesting({ adminRoute, deliveries }: RouteParts): void {
  const testsUnderWay = new Set<string>();

  adminRoute(
    'POST',
    '/api/alerts/test',
    async (ctx, admin) => {
      const { destination } = await readBody(ctx, testing);
      if (!deliveries.names.includes(destination))
        throw new GatewayError('not_found', `There is no destination "${destination}".`);
      if (testsUnderWay.has(destination))
        throw new GatewayError('rate_limit_exceeded', 'A test of this destination is under way.', {
          retryAfter: 5,
        });
      testsUnderWay.add(destination);
      try {
        const now = Date.now();
        const error = await deliveries.send({
          id: `msg_${randomUUID().replaceAll('-', '')}`,
          destination,
          items: [testItem(destination, now)],
          more: 0,
          tries: 1,
          nextAt: now,
          createdAt: now,
        });
        await admin.record({ action: 'test', target: destination, after: { ok: error === undefined } });
        ctx.body = { ok: error === undefined, ...(error === undefined ? {} : { error }) };
      } finally {
        testsUnderWay.delete(destination);
      }
    },
    records,
  );
}

/** Adds the route that acknowledges an alert. */
function addAcknowledging({ adminRoute, state, log, viewOf }: RouteParts): void {
  adminRoute(
    'POST',
    '/api/alerts/acknowledge',
    async (ctx, admin) => {
      const { id } = await readBody(ctx, named);
      const now = { acknowledgedAt: Date.now(), acknowledgedBy: admin.actor.name };
      let before: JsonObject = {};
      const changed = await state.administer((current) => {
        const open = current.alerts.find((one) => one.id === id && one.state === 'firing');
        if (open === undefined) return undefined;
        const { acknowledgedAt, acknowledgedBy = null } = open;
        before = acknowledgedAt === undefined ? {} : { acknowledgedAt, acknowledgedBy };
        const alerts = current.alerts.map((one) => (one.id === id ? { ...one, ...now } : one));
        return { ...current, alerts };
      });
      if (changed === undefined) throw new GatewayError('not_found', 'There is no open alert with this id.');
      log.info({ alert: id }, 'an alert was acknowledged');
      await admin.record({ action: 'acknowledge', target: id, before, after: now });
      ctx.body = viewOf(changed);
    },
    records,
  );
}

/** Adds the route that mutes alerts for some minutes, or ends that. */
function addMuting({ adminRoute, state, log, viewOf }: RouteParts): void {
  adminRoute(
    'POST',
    '/api/alerts/mute',
    async (ctx, admin) => {
      const { id, kind, minutes } = await readBody(ctx, muting);
      const now = Date.now();
      const until = now + minutes * 60_000;
      let before: JsonObject = {};
      const changed = await state.administer((current) => {
        const old = current.mutes.find((one) => one.until > now && one.id === id && one.kind === kind);
        before = old === undefined ? {} : { until: old.until };
        const others = current.mutes.filter((one) => one.until > now && (one.id !== id || one.kind !== kind));
        if (minutes === 0) return { ...current, mutes: others };
        if (others.length >= limits.mutes) return undefined;
        const mute = {
          until,
          ...(id === undefined ? {} : { id }),
          ...(kind === undefined ? {} : { kind }),
        };
        return { ...current, mutes: [...others, mute] };
      });
      if (changed === undefined)
        throw new GatewayError('conflict', `At most ${limits.mutes} alerts can be muted.`);
      log.info({ alert: id, kind, minutes }, 'alerts were muted');
      await admin.record({
        action: 'mute',
        target: id ?? kind ?? '',
        before,
        after: minutes === 0 ? {} : { until },
      });
      ctx.body = viewOf(changed);
    },
    records,
  );
}

function testItem(destination: string, at: number): Item {
  return {
    id: `test ${destination}`,
    kind: 'test',
    subject: destination,
    severity: 'info',
    state: 'firing',
    at,
    text: `This is a test of the destination "${destination}".`,
    view: 'processes',
    once: true,
  };
}

async function readBody<Schema extends z.ZodType>(
  { req }: RouteContext,
  schema: Schema,
): Promise<z.output<Schema>> {
  req.setEncoding('utf8');
  let text = '';
  for await (const piece of req as AsyncIterable<string>) {
    text += piece;
    if (text.length > maxBody)
      throw new GatewayError('request_too_large', `A body has at most ${maxBody} characters here.`);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new GatewayError('invalid_json', 'The body is not valid JSON.');
  }
  const read = schema.safeParse(value);
  if (!read.success) throw new GatewayError('invalid_request', z.prettifyError(read.error));
  return read.data;
}

import type { Observable } from 'rxjs';
import type { z } from 'zod';
import { upstreamError } from '../../../core/formats/_shared/upstream-error/index.ts';
import { createLog } from '../../../core/log.ts';
import type { GatewayEvent } from '../../../core/model/event.ts';
import { createAttempts } from '../../../core/routing/attempts.ts';
import { TargetLoads } from '../../../core/routing/load.ts';
import type { Call } from '../../../core/sdk/call.ts';
import type { Next } from '../../../core/sdk/define.ts';
import type { GatewayError } from '../../../core/sdk/errors.ts';
import { Notices, type NoticeEvents } from '../../../core/sdk/notices.ts';
import { routingSchema, type RoutingSettings } from '../../../core/settings/routing.ts';
import { catalogOf, FakeHealth, nameOf, type Wanted } from './_targets.ts';

/** The first event of a reply. */
export const event: GatewayEvent = { type: 'head', id: '1', model: 'm' };

/** Response of a channel to a call; `name` is `channel/key`. */
export type Answer = (name: string, call: Call) => Promise<Observable<GatewayEvent>>;

/** Attempts with the fakes around them. */
export interface AttemptsWorld {
  readonly attempts: Next;
  readonly health: FakeHealth;
  readonly load: TargetLoads;
  /** `channel/key` of each attempt, in order. */
  readonly attempted: string[];
  /** Notices of failed attempts. */
  readonly noticed: Parameters<NoticeEvents['attempt-failed']>[0][];
  /** Returns the number of running attempts. */
  running(): number;
}

/** Creates attempts at channels that respond with `answer`. */
export function setUp(
  wanted: readonly Wanted[],
  answer: Answer,
  routing: z.input<typeof routingSchema> = {},
): AttemptsWorld {
  const health = new FakeHealth();
  const load = new TargetLoads();
  const settings: RoutingSettings = routingSchema.parse(routing);
  const attempted: string[] = [];
  const noticed: AttemptsWorld['noticed'] = [];
  const notices = new Notices(createLog('silent'));
  notices.on('attempt-failed', (notice) => noticed.push(notice));
  const attempts = createAttempts({
    catalog: catalogOf(...wanted),
    notices,
    health,
    load,
    settings,
    translate: (call) => {
      if (call.target === undefined) throw new Error('no target');
      const name = nameOf(call.target);
      attempted.push(name);
      return answer(name, call);
    },
  });
  const running = (): number => wanted.reduce((sum, { id }) => sum + load.channel(id).running, 0);
  return { attempts, health, load, attempted, noticed, running };
}

/** Returns a provider's error with this status. */
export const status = (code: number, headers: Record<string, string> = {}): GatewayError =>
  upstreamError(code, '{"error":{"message":"why not"}}', headers);

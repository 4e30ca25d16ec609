/** State that the routes of one gateway share: the gateway in force, the open responses, and the flags of a shutdown. */
import type { IncomingMessage } from 'node:http';
import { createEndErrorReporter } from '../call/end-errors.ts';
import { InFlight } from '../sdk/in-flight.ts';
import type { Rates } from '../money/rates/index.ts';
import type { Format } from '../sdk/format.ts';
import type { Health } from '../sdk/health.ts';
import type { Stores } from '../state/stores.ts';
import type { Upkeep } from '../state/upkeep.ts';
import { createClientAddress } from './client-address.ts';
import type { Gateway } from './gateway.ts';
import type { Overload } from './overload.ts';
import type { Reply, ReplyOptions } from './reply.ts';

/** Services of the process that stay the same when the config is reloaded. */
export interface FrontParts {
  readonly stores: Pick<Stores, 'health'>;
  readonly rates: Pick<Rates, 'state'>;
  readonly health: Health;
  readonly overload: Overload;
  readonly upkeep: Pick<Upkeep, 'warned'>;
}

/** State shared by the routes of one gateway. */
export class Front {
  readonly gateway: Gateway;
  readonly parts: FrontParts;
  /** Replies that have not ended. */
  readonly replies = new InFlight<Reply>();
  readonly replyOptions: ReplyOptions;
  /** The client's address, through proxies that are trusted. */
  readonly clientAddress: (request: IncomingMessage) => string;
  /** Connections are closed after their call from now on. */
  draining = false;
  /** The gateway is about to stop: `/readyz` answers 503. */
  announced = false;
  /** The gateway ends, and no other process takes over. */
  stopping = false;

  constructor(gateway: Gateway, parts: FrontParts) {
    const { log, notices, settings } = gateway;
    const { keepAlive, stalled } = settings.timeouts;
    this.gateway = gateway;
    this.parts = parts;
    this.replyOptions = { log, endErrors: createEndErrorReporter(log, notices), keepAlive, stalled };
    this.clientAddress = createClientAddress(settings.trustedProxies);
  }

  /** Throws for a name that no format has. */
  formatNamed(name: string): Format {
    const found = this.gateway.formats.find((format) => format.name === name);
    if (found === undefined) throw new Error(`There is no format ${name}.`);
    return found;
  }
}

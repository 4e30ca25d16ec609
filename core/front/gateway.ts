import type { Settings } from '../settings/index.ts';
import type { Format } from '../sdk/format.ts';
import type { Catalog } from '../routing/catalog.ts';
import type { Prices } from '../money/prices/index.ts';
import type { Running } from '../call/pipeline.ts';
import type { Notices } from '../sdk/notices.ts';
import type { Log } from '../log.ts';
import type { Context } from 'koa';
import type { Next, RouteHandler, WholeEndpoint } from '../sdk/define.ts';

/** A route that a plugin added. */
export interface PluginRoute {
  readonly plugin: string;
  readonly method: string;
  readonly path: string;
  readonly handler: RouteHandler;
}

/** Tells whether a request comes from whoever runs the gateway. */
export type IsOperator = (ctx: Context) => Promise<boolean>;

/** Everything in force, made once from a config and never changed. A reload makes a new one. */
export interface Gateway {
  readonly settings: Settings;
  readonly formats: readonly Format[];
  readonly catalog: Catalog;
  readonly prices: Prices;
  /** Order in which plugins run. */
  readonly plugins: readonly Running[];
  readonly routes: readonly PluginRoute[];
  readonly endpoints: readonly WholeEndpoint[];
  /** Each tells whether a request comes from whoever runs the gateway. */
  readonly operators: readonly IsOperator[];
  readonly notices: Notices;
  readonly log: Log;
  /** The whole onion: call in, events out. */
  readonly handle: Next;
  /** Observe to shape around another terminal: for calls that no channel answers, such as model lists. */
  around(terminal: Next): Next;
  /** Observe to admit around another terminal: for what concerns no model, such as a plugin's endpoint or a socket that opens. */
  identified(terminal: Next): Next;
  /** It serves from now on: whatever it does of its own accord begins. */
  begin(): void;
  /** Sentences the operator should read but that stop nothing. */
  readonly warnings: readonly string[];
  close(): Promise<void>;
}

/** Type of a configured gateway: settings, formats, channels, prices, plugins and pipeline. A reload builds a new one. */
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

/** Resolves to true when a request comes from the operator of the gateway. */
export type IsOperator = (ctx: Context) => Promise<boolean>;

/** A configured gateway. Made once from a config and never changed. */
export interface Gateway {
  readonly settings: Settings;
  readonly formats: readonly Format[];
  readonly catalog: Catalog;
  readonly prices: Prices;
  /** Order in which plugins run. */
  readonly plugins: readonly Running[];
  readonly routes: readonly PluginRoute[];
  readonly endpoints: readonly WholeEndpoint[];
  /** Checks for the operator; one match suffices. */
  readonly operators: readonly IsOperator[];
  readonly notices: Notices;
  readonly log: Log;
  /** The whole pipeline, from the call to the events of its response. */
  readonly handle: Next;
  /** Observe to shape around another terminal: for calls that no channel answers, such as model lists. */
  around(terminal: Next): Next;
  /** Observe to admit around another terminal: for what concerns no model, such as a plugin's endpoint or a socket that opens. */
  identified(terminal: Next): Next;
  /** Starts background work, when the gateway begins to serve. */
  begin(): void;
  /** Problems of the config that do not prevent a start. */
  readonly warnings: readonly string[];
  close(): Promise<void>;
}

import type { GatewayEvent, GatewayRequest } from 'sluice';
import type { Switches } from './switches.ts';

/** Implementation of one operation of the demo besides chat. */
export interface DemoOperation<R extends GatewayRequest = GatewayRequest> {
  /** The formats in which it does. */
  readonly speaks: readonly string[];
  /** Returns the text in which magic words are looked for. */
  text(request: R): string;
  /** Returns the events of the answer; the same request gives the same. */
  answer(request: R, switches: Switches): readonly GatewayEvent[];
}

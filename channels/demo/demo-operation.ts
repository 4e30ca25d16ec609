import type { GatewayEvent, GatewayRequest } from 'sluice';
import type { Switches } from './switches.ts';

/** How the demo does an operation besides chat. */
export interface DemoOperation<R extends GatewayRequest = GatewayRequest> {
  /** The formats in which it does. */
  readonly speaks: readonly string[];
  /** Where magic words may stand. */
  text(request: R): string;
  /** The events of the answer; the same request gives the same. */
  answer(request: R, switches: Switches): readonly GatewayEvent[];
}

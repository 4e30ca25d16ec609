/** The context of a call for encoders of its response. */
import { expandedBody } from '../sdk/call.ts';
import type { ReplyContext } from '../sdk/format.ts';
import type { JsonObject } from '../model/json.ts';
import { isChat } from '../model/request.ts';
import { estimateInput, estimateTokens } from '../tokens/index.ts';
import type { Exchange } from './exchange.ts';

/** A class because accessors in an object literal give every object a shape of its own, which outlives it: scavenges took ten times as long. */
export class CallReplyContext implements ReplyContext {
  readonly #exchange: Exchange;
  readonly drop: (path: string) => void;

  constructor(exchange: Exchange, drop: (path: string) => void) {
    this.#exchange = exchange;
    this.drop = drop;
  }

  get model(): string {
    return this.#exchange.model;
  }
  get body(): JsonObject {
    return this.#exchange.wire.body ?? {};
  }
  get expanded(): JsonObject | undefined {
    return this.#exchange.values.get(expandedBody);
  }
  get requestId(): string {
    return this.#exchange.id;
  }
  get created(): number {
    return this.#exchange.created;
  }
  get completed(): number {
    return (this.#exchange.completed ??= Math.floor(Date.now() / 1000));
  }
  get inputEstimate(): number {
    const { decoded, wire } = this.#exchange;
    return decoded !== undefined && isChat(decoded)
      ? estimateInput(decoded)
      : estimateTokens(wire.bytes.length);
  }
}

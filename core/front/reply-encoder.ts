import type { Exchange } from '../call/exchange.ts';
import { replyContext } from '../call/view.ts';
import type { Loss } from '../model/extra.ts';
import type { ReplyContext, StreamEncoder, WholeEncoder } from '../sdk/format.ts';

/** The encoder of one reply, made when it is first asked for: replies that pass through need none. */
export class ReplyEncoder {
  /** What was lost: what the client's format has no place for, each piece once, behind what others have added. */
  readonly losses: Loss[] = [];
  readonly #exchange: Exchange;
  #stream: StreamEncoder | undefined;
  #whole: WholeEncoder | undefined;

  constructor(exchange: Exchange) {
    this.#exchange = exchange;
  }

  stream(): StreamEncoder {
    const { codec, operation } = this.#exchange;
    this.#stream ??= codec.encodeStream?.(this.#context());
    if (this.#stream === undefined) throw new Error(`${codec.format} has no stream for ${operation}.`);
    return this.#stream;
  }

  whole(): WholeEncoder {
    return (this.#whole ??= this.#exchange.codec.encodeWhole(this.#context()));
  }

  #context(): ReplyContext {
    return replyContext(this.#exchange, (path) => {
      const loss: Loss = { path, kind: 'response', from: '', to: this.#exchange.format.name };
      this.losses.push(loss);
      this.#exchange.reportLoss(loss);
    });
  }
}

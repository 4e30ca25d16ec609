import type { Exchange } from '../call/exchange.ts';
import { replyContext } from '../call/view.ts';
import type { Loss } from '../model/extra.ts';
import type { ReplyContext, StreamEncoder, WholeEncoder } from '../sdk/format.ts';

/** Encoder of one response. Created on first use, because responses that pass through need none. */
export class ReplyEncoder {
  /** Dropped fields of the response, each once, after those that other parts have added. */
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

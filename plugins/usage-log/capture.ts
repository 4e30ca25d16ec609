/** Captures the bodies of requests and responses for the usage log, up to a maximum size. */
import type { GatewayEvent, JsonValue, Observing } from 'sluice';
import type { Call } from 'sluice/internal';
import { searchMargin, withoutCutEnd } from '../_redaction.ts';
import type { Redactor } from './redact.ts';

/** Maximum size of a request that is redacted and stored in part, as a multiple of the limit, because redaction works on the whole body. */
const redactable = 32;

/** Returns the body of a request for storage; undefined if there is none. */
export function capturedRequest({ wire }: Call, limit: number, redactor: Redactor): string | undefined {
  const { bytes, body } = wire;
  if (bytes.length === 0 || body === undefined) return undefined;
  if (bytes.length > limit * redactable) return `(${bytes.length} bytes: too many to be stored)`;
  return cut(redactor.request(body), limit);
}

/** A response up to a limit: the bytes of one that passes through, otherwise its blocks. Media are left out. */
export class ReplyCapture implements Observing {
  readonly #limit: number;
  readonly #bytes: Buffer[] = [];
  readonly #blocks = new Map<number, Block>();
  #result: JsonValue | undefined;
  #size = 0;
  /** The block whose text was cut. */
  #cutBlock: Block | undefined;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Adds an event of the response. */
  event(event: GatewayEvent): void {
    if (this.#isFull) return;
    switch (event.type) {
      case 'frames':
      case 'bytes': {
        // Copied, because a part of a buffer keeps the whole buffer in memory.
        const part = Buffer.from(event.bytes.subarray(0, this.#room));
        this.#bytes.push(part);
        this.#size += part.length;
        break;
      }
      case 'text-delta':
      case 'refusal-delta':
      case 'reasoning-delta':
        this.#add(event.block, event.type.slice(0, -'-delta'.length), event.text);
        break;
      case 'tool-start':
        this.#blocks.set(event.block, { type: 'tool', name: event.name, text: '' });
        break;
      case 'tool-delta':
        this.#add(event.block, 'tool', event.input);
        break;
      case 'result':
        this.#result = event.value as JsonValue;
        this.#size += this.#room;
        break;
    }
  }

  /** Returns the captured response, redacted; undefined where nothing was captured. */
  redacted(redactor: Redactor): string | undefined {
    if (this.#bytes.length > 0) {
      const text = redactor.text(Buffer.concat(this.#bytes).toString());
      return cut(this.#isFull ? withoutCutEnd(text) : text, this.#limit, this.#isFull);
    }
    if (this.#result !== undefined) return cut(redactor.json(this.#result), this.#limit);
    if (this.#blocks.size === 0) return undefined;
    const cutBlock = this.#cutBlock;
    const blocks = [...this.#blocks.values()].map((block) =>
      block === cutBlock ? { ...block, text: withoutCutEnd(redactor.plain(block.text)) } : { ...block },
    );
    return cut(redactor.json(blocks), this.#limit, this.#isFull);
  }

  get #room(): number {
    return this.#limit + searchMargin - this.#size;
  }

  get #isFull(): boolean {
    return this.#room <= 0;
  }

  #add(block: number, type: string, text: string): void {
    let one = this.#blocks.get(block);
    if (one === undefined) this.#blocks.set(block, (one = { type, text: '' }));
    one.text += text.slice(0, this.#room);
    this.#size += text.length;
    if (this.#isFull) this.#cutBlock = one;
  }
}

interface Block {
  readonly type: string;
  readonly name?: string;
  text: string;
}

function cut(text: string, limit: number, more = false): string {
  return more || text.length > limit ? `${text.slice(0, limit)}…` : text;
}

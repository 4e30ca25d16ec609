/** Finds reasoning and proofs in responses that pass through. Only frames that contain certain marks are parsed. */
import { parseObject, type ModelTraits, type Proof, HeldBytes, stringEnd } from 'sluice';
import { parseSse, type Codec, type StreamDecoder } from 'sluice/channel-kit';
import type { Listener } from './listener.ts';

/** Texts that a part of a response with a proof contains, in the formats whose clients store proofs themselves. */
const proofMarks: Readonly<Record<string, readonly string[]>> = {
  messages: ['"signature', '"redacted_thinking"'],
  'generate-content': ['"thoughtSignature"', '"thought_signature"'],
  responses: ['"encrypted_content"'],
  converse: ['"signature"', '"redactedContent"'],
};

/**
 * Member of a proof in JSON. Quotes inside of strings are escaped, so that no text matches. The value is not part of the match, because it may be
 * too long for an expression.
 */
const proofFields: Readonly<Record<string, RegExp>> = {
  messages: /"(signature|data)"\s*:\s*(?=")/g,
  'generate-content': /"(thoughtSignature|thought_signature)"\s*:\s*(?=")/g,
  responses: /"(encrypted_content)"\s*:\s*(?=")/g,
  converse: /"(signature|redactedContent)"\s*:\s*(?=")/g,
};

/** Members that contain encrypted reasoning. */
const encryptedFields: ReadonlySet<string | undefined> = new Set([
  'data',
  'encrypted_content',
  'redactedContent',
]);

/** Chat completions: clients of this format do not send back these members, because they do not know them. */
const chat = 'chat-completions';
const chatMarks = ['"reasoning_details"', '"extra_content"'];
const bareMarks = ['"reasoning_content":"', '"reasoning_content": "', '"reasoning":"', '"reasoning": "'];
const laterMarks = ['"tool_calls"', '"finish_reason":"', '"finish_reason": "'];

/** Options of {@link Passing}. */
export interface PassingOptions {
  readonly codec: Codec;
  readonly traits: ModelTraits;
  /** Chat completions: also collects reasoning without a proof. */
  readonly bare: boolean;
  /** Maximum number of bytes of a whole response that is read. */
  readonly limit: number;
}

/** Reads reasoning and proofs from a response that passes through in the client's own format, for a {@link Listener}. */
export class Passing {
  readonly #options: PassingOptions;
  readonly #listener: Listener;
  readonly #marks: readonly string[];
  #decoder: StreamDecoder | undefined;
  #broken = false;
  readonly #whole = new HeldBytes();
  #length = 0;

  constructor(options: PassingOptions, listener: Listener) {
    this.#options = options;
    this.#listener = listener;
    const { format } = options.codec;
    const bare = options.bare ? bareMarks : [];
    this.#marks = format === chat ? [...chatMarks, ...bare] : (proofMarks[format] ?? []);
  }

  /** Reads whole frames of a stream. */
  frames(bytes: Buffer): void {
    if (this.#broken) return;
    const marks = this.#marksNow;
    if (!holds(bytes, marks)) return;
    if (this.#options.codec.format !== chat) {
      this.#proofs(bytes.toString());
      return;
    }
    this.#decoder ??= this.#options.codec.decodeStream?.(this.#options.traits);
    try {
      for (const frame of parseSse(bytes)) {
        if (!this.#marksNow.some((mark) => frame.data.includes(mark))) continue;
        for (const event of this.#decoder?.frame(frame) ?? []) this.#listener.event(event);
      }
    } catch {
      // The response still goes to the client, who may be able to read it.
      this.#broken = true;
    }
  }

  /** Returns true when frames contain the end of the stream. */
  ends(bytes: Buffer): boolean {
    return holds(bytes, this.#options.codec.marks.terminal);
  }

  /** Reads a chunk of a whole response. */
  bytes(chunk: Buffer): void {
    this.#length += chunk.length;
    if (this.#length <= this.#options.limit) this.#whole.push(chunk);
    else this.#whole.take();
  }

  /** Reads a whole response that is complete. */
  end(): void {
    if (this.#length === 0 || this.#length > this.#options.limit) return;
    const body = this.#whole.take();
    if (!holds(body, this.#marks)) return;
    const { codec, traits } = this.#options;
    if (codec.format !== chat) {
      this.#proofs(body.toString());
      return;
    }
    const reply = parseObject(body.toString());
    if (reply === undefined) return;
    try {
      for (const event of codec.decodeWhole(reply, traits)) this.#listener.event(event);
    } catch {
      this.#broken = true;
    }
  }

  get #marksNow(): readonly string[] {
    return this.#listener.listens ? [...this.#marks, ...laterMarks] : this.#marks;
  }

  #proofs(text: string): void {
    try {
      for (const proof of proofsIn(text, this.#options.codec.format)) this.#listener.proof(proof);
    } catch {
      // Invalid JSON is passed to the client unchanged.
      this.#broken = true;
    }
  }
}

function holds(bytes: Buffer, marks: readonly string[]): boolean {
  return marks.some((mark) => bytes.includes(mark));
}

function* proofsIn(text: string, format: string): Generator<Proof> {
  const fields = proofFields[format];
  if (fields === undefined) return;
  for (const { 0: match, 1: field, index } of text.matchAll(fields)) {
    const start = index + match.length;
    const value: unknown = JSON.parse(text.slice(start, stringEnd(text, start) + 1));
    if (typeof value !== 'string' || value === '') continue;
    yield {
      format,
      kind: encryptedFields.has(field) ? 'encrypted' : 'signature',
      value,
    };
  }
}

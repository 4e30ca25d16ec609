/** Signs the reasoning, text and tool calls of the demo channel, and checks the signatures that clients send back, as providers do. */
import { createHash, createHmac } from 'node:crypto';
import {
  GatewayError,
  type Block,
  type ChatRequest,
  type Message,
  type Proof,
  type ToolCallBlock,
} from 'sluice';

/** Kind of content that a signature covers. */
type Sealed = 'reasoning' | 'text' | 'tool-call';

/**
 * The text of neighbouring blocks of one type so far: it goes on from message to message of one turn, because a client may keep each piece
 * of a stream as a message of its own.
 */
interface Run {
  type: string;
  text: string;
}

/** Value that Google accepts in place of a signature for calls that its model did not make. */
const placeholder = 'skip_thought_signature_validator';

const noReasoning = '0'.repeat(8);

/**
 * Makes and checks the demo's proofs of reasoning. They depend on nothing but the account's name, the format and what they vouch for, so
 * that a changed byte shows, on any later turn, in any process. Two demo channels of different accounts refuse each other's, as two
 * accounts of a provider do.
 */
export class Seals {
  readonly #account: string;

  constructor(account: string) {
    this.#account = account;
  }

  /** Returns a signature for visible content. */
  sign(format: string, sealed: Sealed, content: string): Proof {
    return { format, kind: 'signature', value: this.#mac(`${format}\n${sealed}\n${content}`) };
  }

  /** Returns the reasoning that is not shown: only the proof remains. */
  hide(format: string, text: string): Proof {
    const payload = Buffer.from(text).toString('base64url');
    return { format, kind: 'encrypted', value: `${payload}.${this.#mac(`${format}\nhidden\n${payload}`)}` };
  }

  /**
   * Returns an id for a tool call. It ends in a digest of the reasoning that led to the call, so that a later turn can tell whether the reasoning
   * came back with it; `about` makes it differ from call to call.
   */
  callId(prefix: string, about: string, reasoning: string | undefined): string {
    const unique = createHash('sha256').update(about).digest('hex').slice(0, 12);
    return `${prefix}demo${unique}${reasoning === undefined ? noReasoning : digest(reasoning)}`;
  }

  /** Throws 400, as the real provider does, when what came back is not what was made. */
  check(
    request: ChatRequest,
    wire: { readonly format: string; readonly reasons: boolean; readonly strict: boolean },
  ): void {
    const lastUser = lastUserText(request.messages);
    let run: Run = { type: '', text: '' };
    request.messages.forEach((message, index) => {
      if (message.role !== 'assistant') {
        run = { type: '', text: '' };
        return;
      }
      this.#checkProofs(message, wire.format, run);
      checkReplay(message);
      if (index > lastUser && wire.reasons) demandReasoning(message, wire.format, wire.strict);
    });
  }

  #checkProofs(message: Message, format: string, run: Run): void {
    for (const block of message.content) {
      const text = block.type === 'text' || block.type === 'reasoning' ? block.text : '';
      run.text = block.type === run.type ? run.text + text : text;
      run.type = block.type;
      if (!('proof' in block) || block.proof === undefined) continue;
      if (!this.#vouches(block, block.proof, run.text, format)) {
        const what = block.type === 'reasoning' ? 'thinking' : block.type;
        throw new GatewayError('invalid_value', `${pathOf(block)}: invalid signature in ${what} block.`, {
          param: pathOf(block),
        });
      }
    }
  }

  /** Clients that gather a stream may send the whole run in one block or piece by piece with the proof on the last. */
  #vouches(block: Block, proof: Proof, run: string, format: string): boolean {
    if (proof.format !== format) return false;
    if (proof.value === placeholder) return true;
    if (proof.kind === 'encrypted') {
      const [payload, mac] = proof.value.split('.');
      return mac === this.#mac(`${format}\nhidden\n${payload}`);
    }
    if (block.type === 'tool-call')
      return proof.value === this.sign(format, 'tool-call', callContent(block)).value;
    if (block.type !== 'reasoning' && block.type !== 'text') return false;
    return [block.text, run].some((text) => proof.value === this.sign(format, block.type, text).value);
  }

  #mac(content: string): string {
    return createHmac('sha256', this.#account).update(content).digest('base64');
  }
}

/** Returns the content that a call's signature covers. Formats that carry the input as an object may have changed its white space. */
export function callContent(call: Pick<ToolCallBlock, 'name' | 'input'>): string {
  try {
    return `${call.name}\n${JSON.stringify(JSON.parse(call.input === '' ? '{}' : call.input))}`;
  } catch {
    return `${call.name}\n${call.input}`;
  }
}

/** Returns the index of the last user message with words of its own; tool results alone do not begin a new turn. */
export function lastUserText(messages: readonly Message[]): number {
  return messages.findLastIndex(
    ({ role, content }) => role === 'user' && content.some(({ type }) => type !== 'tool-result'),
  );
}

/** Returns the path of a block or message in the request. */
function pathOf(piece: Block | Message): string {
  return piece.at ?? 'messages';
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 8);
}

/** Returns the digest of the reasoning that an id of ours carries; undefined when the turn had none, or the id is not ours. */
function reasonedId(block: Block): string | undefined {
  if (block.type !== 'tool-call') return undefined;
  const mark = /demo[0-9a-f]{12}([0-9a-f]{8})$/.exec(block.id)?.[1];
  return mark === noReasoning ? undefined : mark;
}

/** Throws if reasoning without a signature is not the reasoning that led to the call beside it. */
function checkReplay(message: Message): void {
  const mark = message.content.map(reasonedId).find((found) => found !== undefined);
  const bare = message.content.filter((block) => block.type === 'reasoning' && block.proof === undefined);
  if (mark === undefined || bare.length === 0) return;
  const text = bare.map((block) => (block.type === 'reasoning' ? block.text : '')).join('');
  if (digest(text) !== mark) {
    throw new GatewayError(
      'invalid_value',
      `${pathOf(message)}: reasoning_content is not the reasoning of this turn.`,
    );
  }
}

/** Within an open tool loop a reasoning model wants its reasoning back, each provider in its own way. */
function demandReasoning(message: Message, format: string, strict: boolean): void {
  const call = message.content.find((block) => reasonedId(block) !== undefined);
  if (call?.type !== 'tool-call') return;
  const thought = message.content.some(({ type }) => type === 'reasoning');
  const at = pathOf(message);
  if ((format === 'messages' || format === 'converse') && !thought) {
    throw new GatewayError(
      'invalid_value',
      `${at}: expected thinking or redacted_thinking before tool_use when thinking is enabled.`,
    );
  }
  if (
    format === 'generate-content' &&
    !message.content.some((block) => block.type === 'tool-call' && block.proof !== undefined)
  ) {
    throw new GatewayError(
      'invalid_value',
      `${at}: the function call ${call.name} is missing a thought_signature.`,
    );
  }
  if (format === 'chat-completions' && strict && !thought) {
    throw new GatewayError(
      'invalid_value',
      `${at}: the reasoning_content of a turn with tool calls must be passed back.`,
    );
  }
}

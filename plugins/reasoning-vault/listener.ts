/** Collects reasoning, proofs and tool calls from the events of a response. */
import { isObject, type GatewayEvent, type Proof } from 'sluice';
import { numberedId } from 'sluice/channel-kit';
import type { CalledTool, Thought, Turn } from './turn.ts';

/** Turns and proofs of a response that are not stored yet. */
export interface Collected {
  readonly turns: readonly Pick<Turn, 'thoughts' | 'calls'>[];
  readonly proofs: readonly Proof[];
}

/** Options of a {@link Listener}. */
export interface ListenerOptions {
  /** True: also collects reasoning without a proof. */
  readonly bare: boolean;
  /** Maximum number of characters of reasoning of a response. A turn with more is not stored. */
  readonly limit: number;
}

interface OpenThought {
  text: string;
  readonly calls: number;
  readonly spoken: boolean;
}

/** State of one choice. */
interface Answer {
  readonly thoughts: Thought[];
  readonly calls: CalledTool[];
  readonly open: Map<number, OpenThought>;
  spoken: boolean;
}

/** The format whose reasoning is an item that must be sent back with all its fields. */
const itemized = 'responses';

/** Collects turns and proofs from the events of one response. */
export class Listener {
  readonly #options: ListenerOptions;
  readonly #answers = new Map<number, Answer>();
  readonly #ids = new Map<string, number>();
  #turns: Collected['turns'][number][] = [];
  #proofs: Proof[] = [];
  #length = 0;

  constructor(options: ListenerOptions) {
    this.#options = options;
  }

  /** True when a choice has reasoning or a proof, so that its tool calls and its end matter. */
  get listens(): boolean {
    return this.#answers.size > 0;
  }

  event(event: GatewayEvent): void {
    switch (event.type) {
      case 'reasoning-start': {
        const answer = this.#answer(event.choice);
        const { calls, spoken } = answer;
        answer.open.set(event.block, { text: '', calls: calls.length, spoken });
        return;
      }
      case 'reasoning-delta': {
        const open = this.#answers.get(event.choice)?.open.get(event.block);
        this.#length += event.text.length;
        if (open !== undefined && !this.#full) open.text += event.text;
        return;
      }
      case 'reasoning-end':
        this.#end(event);
        return;
      case 'text-delta': {
        if (event.text === '') return;
        const answer = this.#answers.get(event.choice);
        if (answer !== undefined) answer.spoken = true;
        else if (event.text.trim() !== '') this.#answer(event.choice).spoken = true;
        return;
      }
      case 'text-end':
        if (event.proof !== undefined) this.#proofs.push(event.proof);
        return;
      case 'tool-start':
        this.#call(event);
        return;
      case 'finish':
        this.#finish(event.choice);
    }
  }

  /** Adds a proof that was found without decoding events. */
  proof(proof: Proof): void {
    this.#proofs.push(proof);
  }

  /** True when `take` would return something. */
  get pending(): boolean {
    return this.#turns.length > 0 || this.#proofs.length > 0;
  }

  /** Returns what was collected since the last call; undefined where there is nothing. */
  take(): Collected | undefined {
    if (!this.pending) return undefined;
    const collected = { turns: this.#turns, proofs: this.#proofs };
    this.#turns = [];
    this.#proofs = [];
    return collected;
  }

  get #full(): boolean {
    return this.#length > this.#options.limit;
  }

  #answer(choice: number): Answer {
    let answer = this.#answers.get(choice);
    if (answer === undefined)
      this.#answers.set(choice, (answer = { thoughts: [], calls: [], open: new Map(), spoken: false }));
    return answer;
  }

  #end(event: Extract<GatewayEvent, { type: 'reasoning-end' }>): void {
    const { proof, choice, block } = event;
    const answer = this.#answer(choice);
    const open = answer.open.get(block);
    answer.open.delete(block);
    if (proof !== undefined) this.#proofs.push(proof);
    if (open === undefined || (proof === undefined && (!this.#options.bare || open.text === ''))) return;
    const { text, calls, spoken } = open;
    const item = event.extra?.[itemized]?.$done;
    const extra =
      isObject(item) && proof?.format === itemized
        ? { [itemized]: { $item: { ...item, encrypted_content: proof.value }, $text: text } }
        : undefined;
    answer.thoughts.push({
      text,
      calls,
      spoken,
      ...(proof === undefined ? {} : { proof }),
      ...(extra === undefined ? {} : { extra }),
    });
  }

  #call(event: Extract<GatewayEvent, { type: 'tool-start' }>): void {
    const { name, proof, choice, extra } = event;
    if (proof !== undefined) this.#proofs.push(proof);
    const sent = extra?.['chat-completions']?.['call.extra_content'];
    const beside = isObject(sent) ? sent : undefined;
    this.#answer(choice).calls.push({
      id: this.#given(event.id),
      name,
      ...(proof === undefined ? {} : { proof }),
      ...(proof === undefined || beside === undefined ? {} : { beside }),
    });
  }

  /** Returns an id as the client gets it: repeated ids of a response are numbered. */
  #given(id: string): string {
    return numberedId(id, this.#ids);
  }

  #finish(choice: number): void {
    const answer = this.#answers.get(choice);
    this.#answers.delete(choice);
    if (answer === undefined || this.#full) return;
    const { thoughts, calls } = answer;
    if (calls.length > 0 && (thoughts.length > 0 || calls.some(({ proof }) => proof !== undefined)))
      this.#turns.push({ thoughts, calls });
  }
}

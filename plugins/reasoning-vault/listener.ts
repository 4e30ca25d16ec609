import { isObject, type GatewayEvent, type Proof } from 'sluice';
import { numberedId } from 'sluice/channel-kit';
import type { CalledTool, Thought, Turn } from './turn.ts';

/** What was heard of one reply and is not stored yet. */
export interface Heard {
  readonly turns: readonly Pick<Turn, 'thoughts' | 'calls'>[];
  readonly proofs: readonly Proof[];
}

/** How a listener listens. */
export interface ListenerOptions {
  /** Reasoning without a proof is wanted back too. */
  readonly bare: boolean;
  /** Most characters of reasoning that are held for one reply: a turn with more is not kept. */
  readonly limit: number;
}

interface OpenThought {
  text: string;
  readonly calls: number;
  readonly spoken: boolean;
}

/** One answer of several. */
interface Answer {
  readonly thoughts: Thought[];
  readonly calls: CalledTool[];
  readonly open: Map<number, OpenThought>;
  spoken: boolean;
}

/** The format whose reasoning is an item, which must come back with all its fields. */
const itemized = 'responses';

/** Follows the events of a reply and gathers reasoning, proofs and the calls that they belong to. */
export class Listener {
  readonly #options: ListenerOptions;
  readonly #answers = new Map<number, Answer>();
  readonly #ids = new Map<string, number>();
  #turns: Heard['turns'][number][] = [];
  #proofs: Proof[] = [];
  #length = 0;

  constructor(options: ListenerOptions) {
    this.#options = options;
  }

  /** True when some reasoning or proof was heard, so that calls and the end matter. */
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

  /** A proof that was found without its events. */
  proof(proof: Proof): void {
    this.#proofs.push(proof);
  }

  /** True when `take` has something to give. */
  get pending(): boolean {
    return this.#turns.length > 0 || this.#proofs.length > 0;
  }

  /** What was heard since the last time, once; undefined when there is nothing to keep. */
  take(): Heard | undefined {
    if (!this.pending) return undefined;
    const heard = { turns: this.#turns, proofs: this.#proofs };
    this.#turns = [];
    this.#proofs = [];
    return heard;
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

  /** The id as the client gets it: of equal ones in a reply the later are numbered. */
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

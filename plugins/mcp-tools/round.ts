/** Reads one reply of the model: passes on the events that the client sees, and keeps the turn for the next request. */
import type { Block, FinishReason, GatewayEvent, JsonObject, Message, Usage } from 'sluice';
import type { OfferedTool, ToolCatalog } from './catalog.ts';
import { isObject, parseObject } from './json.ts';

/** A call of a tool that the gateway answers. */
export interface ModelCall {
  readonly id: string;
  readonly name: string;
  /** The JSON text that the model wrote. */
  readonly input: string;
  /** Undefined for a tool that neither the client nor a server has. */
  readonly offered: OfferedTool | undefined;
}

/** State that the rounds of one call share. */
export interface RoundContext {
  readonly catalog: ToolCatalog;
  /** Names of the client's own functions. */
  readonly ownTools: ReadonlySet<string>;
  /** Returns a number for a block that no other block of the reply has. */
  nextBlock(): number;
}

type Finish = Extract<GatewayEvent, { readonly type: 'finish' }>;
type BlockEvent = Extract<GatewayEvent, { readonly block: number }>;

/** A block that has begun. */
interface Growing {
  readonly start: BlockEvent;
  /** Number in the client's reply. */
  readonly number: number;
  readonly pieces: string[];
  /** True for a call that the gateway answers: the client does not see it. */
  readonly isHidden: boolean;
  proof?: Extract<GatewayEvent, { readonly type: 'text-end' }>['proof'];
}

type Part = Growing | { readonly opaque: Block };

/** Reads one reply. */
export class Round {
  readonly #context: RoundContext;
  readonly #parts: Part[] = [];
  readonly #open = new Map<number, Growing>();
  /** The block of messages that has begun and that only this format knows. */
  #hosted: { readonly block: JsonObject; readonly input: string[] } | undefined;
  #finish: Finish | undefined;
  #usage: Usage | undefined;

  constructor(context: RoundContext) {
    this.#context = context;
  }

  get finish(): Finish | undefined {
    return this.#finish;
  }

  /** Latest usage that the provider has reported. */
  get usage(): Usage | undefined {
    return this.#usage;
  }

  get reason(): FinishReason {
    return this.#finish?.reason ?? 'stop';
  }

  /** The calls that the gateway answers. */
  get calls(): readonly ModelCall[] {
    return this.#parts.flatMap((part) => (isGrowing(part) && part.isHidden ? [this.#callOf(part)] : []));
  }

  /** True when the model called a function of the client. */
  get callsClient(): boolean {
    return this.#parts.some((part) => isGrowing(part) && part.start.type === 'tool-start' && !part.isHidden);
  }

  /** True when the reply has a text. */
  get speaks(): boolean {
    return this.#parts.some(
      (part) => isGrowing(part) && part.start.type === 'text-start' && part.pieces.length > 0,
    );
  }

  /** The response as a message of the history. */
  get message(): Message {
    return {
      role: 'assistant',
      content: this.#parts.flatMap((part) => (isGrowing(part) ? this.#blockOf(part) : [part.opaque])),
    };
  }

  /** Reads an event. Returns it as the client sees it; undefined for an event that is hidden from the client. */
  event(event: GatewayEvent): GatewayEvent | undefined {
    if ('block' in event) return this.#blockEvent(event);
    if (event.type === 'finish') this.#finish = event;
    else if (event.type === 'usage') this.#usage = event.usage;
    else if (event.type === 'opaque') this.#keep(event.format, event.value);
    return event.type === 'finish' || event.type === 'usage' ? undefined : event;
  }

  #blockEvent(event: BlockEvent): GatewayEvent | undefined {
    const known = this.#open.get(event.block);
    if (event.type.endsWith('-start')) {
      const begun: Growing = {
        start: event,
        number: this.#context.nextBlock(),
        pieces: [],
        isHidden: event.type === 'tool-start' && this.#isOurs(event.name, event.custom),
      };
      this.#open.set(event.block, begun);
      this.#parts.push(begun);
      return begun.isHidden ? undefined : { ...event, block: begun.number };
    }
    if (known === undefined) return undefined;
    if (event.type === 'text-delta' || event.type === 'reasoning-delta' || event.type === 'refusal-delta') {
      if (event.text !== '') known.pieces.push(event.text);
    } else if (event.type === 'tool-delta') known.pieces.push(event.input);
    else if ((event.type === 'text-end' || event.type === 'reasoning-end') && event.proof !== undefined)
      known.proof = event.proof;
    return known.isHidden ? undefined : { ...event, block: known.number };
  }

  /** Returns true for a tool of a server, and for one that neither the client nor a server has. */
  #isOurs(name: string, isCustom: boolean | undefined): boolean {
    const { catalog, ownTools } = this.#context;
    if (catalog.named(name) !== undefined) return true;
    return isCustom !== true && !ownTools.has(name);
  }

  #callOf({ start, pieces, number }: Growing): ModelCall {
    const { id, name } = start as Extract<GatewayEvent, { readonly type: 'tool-start' }>;
    return {
      id: id === '' ? `call_${number}` : id,
      name,
      input: pieces.join(''),
      offered: this.#context.catalog.named(name),
    };
  }

  #blockOf(part: Growing): readonly Block[] {
    const { start, pieces, proof } = part;
    const text = pieces.join('');
    const proven = proof === undefined ? {} : { proof };
    switch (start.type) {
      case 'text-start':
        return text === '' ? [] : [{ type: 'text', text, ...proven }];
      case 'refusal-start':
        return text === '' ? [] : [{ type: 'refusal', text }];
      case 'reasoning-start':
        return text === '' && proof === undefined ? [] : [{ type: 'reasoning', text, ...proven }];
      case 'tool-start': {
        const { id, name, custom, proof: own } = start;
        return [
          {
            type: 'tool-call',
            id: part.isHidden ? this.#callOf(part).id : id,
            name,
            input: text,
            ...(custom === true ? { custom } : {}),
            ...(own === undefined ? {} : { proof: own }),
          },
        ];
      }
      default:
        return [];
    }
  }

  /** Adds items and blocks of tools that the provider itself ran to the next request. */
  #keep(format: string, value: JsonObject): void {
    const { item, content_block: block, delta } = value;
    switch (value['type']) {
      case 'response.output_item.done':
        if (isObject(item)) this.#add(format, item);
        break;
      case 'content_block_start':
        this.#hosted = isObject(block) ? { block, input: [] } : undefined;
        break;
      case 'content_block_delta':
        if (isObject(delta) && typeof delta['partial_json'] === 'string')
          this.#hosted?.input.push(delta['partial_json']);
        break;
      case 'content_block_stop': {
        if (this.#hosted === undefined) break;
        const { block: begun, input } = this.#hosted;
        this.#hosted = undefined;
        const written = parseObject(input.join(''));
        this.#add(format, written === undefined ? begun : { ...begun, input: written });
      }
    }
  }

  #add(format: string, value: JsonObject): void {
    this.#parts.push({ opaque: { type: 'opaque', format, value, spare: true } });
  }
}

function isGrowing(part: Part): part is Growing {
  return 'start' in part;
}

/** Collects the texts of a response for the content of its span, up to a limit. */
import type { GatewayEvent } from 'sluice';
import { word } from './settings.ts';

/** A part of a message as the GenAI conventions write it. */
export type Part = Readonly<Record<string, unknown>> & { readonly type: string };

/** Block of a response while it is received. */
interface Growing {
  readonly choice: number;
  readonly type: 'text' | 'reasoning' | 'tool_call' | 'media';
  readonly id?: string;
  readonly name?: string;
  text: string;
}

/** Maximum number of blocks of one response that are kept. */
const maxBlocks = 500;

/** Maximum number of choices of one response that are kept, because providers assign their numbers. */
export const maxChoices = 128;

/** Texts of a response: answers, refusals, reasoning and tool calls. Media are named without their data. */
export class ReplyText {
  readonly #limit: number;
  readonly #blocks = new Map<number, Growing>();
  #size = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  event(event: GatewayEvent): void {
    switch (event.type) {
      case 'text-delta':
      case 'refusal-delta':
        this.#add(event.block, event.choice, 'text', event.text);
        break;
      case 'reasoning-delta':
        this.#add(event.block, event.choice, 'reasoning', event.text);
        break;
      case 'tool-start':
        this.#begin(event.block, {
          choice: event.choice,
          type: 'tool_call',
          id: word(event.id),
          name: word(event.name),
          text: '',
        });
        break;
      case 'tool-delta':
        this.#add(event.block, event.choice, 'tool_call', event.input);
        break;
      case 'media-start':
        this.#begin(event.block, { choice: event.choice, type: 'media', name: event.media, text: '' });
        break;
    }
  }

  /** Returns the parts of each choice. Arguments of tools are objects where they are JSON and complete. */
  choices(redact: (text: string) => string): readonly (readonly Part[])[] {
    const choices: Part[][] = [];
    for (const { choice, type, id, name, text } of this.#blocks.values()) {
      const parts = (choices[choice] ??= []);
      if (type === 'tool_call')
        parts.push({
          type,
          id: id ?? '',
          name: name ?? '',
          arguments: argumentsOf(redact(text)),
        });
      else if (type === 'media') parts.push({ type: name ?? 'media' });
      else parts.push({ type, content: redact(text) });
    }
    return Array.from(choices, (parts) => parts ?? []);
  }

  #begin(block: number, growing: Growing): void {
    if (this.#blocks.size < maxBlocks && growing.choice < maxChoices) this.#blocks.set(block, growing);
  }

  #add(block: number, choice: number, type: Growing['type'], text: string): void {
    if (this.#size >= this.#limit) return;
    if (!this.#blocks.has(block)) this.#begin(block, { choice, type, text: '' });
    const one = this.#blocks.get(block);
    if (one === undefined) return;
    const added = text.slice(0, this.#limit - this.#size);
    one.text += added;
    this.#size += added.length;
  }
}

/** Returns the arguments of a tool as the conventions write them; the text itself where it is no JSON, or was cut. */
export function argumentsOf(text: string): unknown {
  try {
    return text === '' ? {} : (JSON.parse(text) as unknown);
  } catch {
    return text;
  }
}

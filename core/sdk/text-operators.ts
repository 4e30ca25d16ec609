/** RxJS operators that change the texts of a streamed response, with text held back across chunk borders: `mapText` and `transformText`. */
import { concatMap, endWith, type MonoTypeOperatorFunction } from 'rxjs';
import type { GatewayEvent } from '../model/event.ts';

/**
 * Kinds of text in a reply: text, reasoning and refusals of the model, the arguments of its tool calls (JSON text, except of custom tools), and
 * the transcript of its speech.
 *
 * @example
 * const kinds: readonly TextKind[] = ['text', 'reasoning'];
 */
export type TextKind = 'text' | 'reasoning' | 'refusal' | 'arguments' | 'transcript';

/**
 * One text of a reply: everything between the start and the end of a block.
 *
 * @example
 * const describe = ({ kind, choice }: TextBlockInfo): string => `${kind} of choice ${choice}`;
 */
export interface TextBlockInfo {
  readonly kind: TextKind;
  readonly block: number;
  readonly choice: number;
  /** Name of the tool, for `arguments`. */
  readonly tool?: string;
  /** True for the free text that a custom tool takes; other arguments are JSON. */
  readonly custom?: boolean;
}

/**
 * Changes one text of a reply while it is streamed. It may hold text back and return it later.
 *
 * @example
 * const upperCase: TextTransformer = { push: (text) => text.toUpperCase(), end: () => '' };
 */
export interface TextTransformer {
  /** Receives the next piece and returns the text that may be emitted. */
  push(text: string): string;
  /** Called when the text is complete; returns the text that was held back. */
  end(): string;
}

/** Deltas by the kind of their text. */
const kindOfDelta: Readonly<Record<string, TextKind>> = {
  'text-delta': 'text',
  'reasoning-delta': 'reasoning',
  'refusal-delta': 'refusal',
  'tool-delta': 'arguments',
  'media-delta': 'transcript',
};

const ends: ReadonlySet<string> = new Set([
  'text-end',
  'reasoning-end',
  'refusal-end',
  'tool-end',
  'media-end',
]);

/**
 * Changes the texts of a reply with a transformer for each block. `make` returns undefined for a text that stays as it is. Held text goes out
 * before the end of its block, and is dropped when the reply breaks. Deltas that change lose their log probabilities. Declare
 * `reads: 'content'`, or send the call with `decoded: true`.
 *
 * @example
 * return (await next(call)).pipe(
 *   transformText(({ kind }) => (kind === 'text' ? { push: (text) => text.toUpperCase(), end: () => '' } : undefined)),
 * );
 */
export function transformText(
  make: (info: TextBlockInfo) => TextTransformer | undefined,
): MonoTypeOperatorFunction<GatewayEvent> {
  return (source) => {
    const texts = new OpenTexts(make);
    return source.pipe(
      endWith(undefined),
      concatMap((event) => (event === undefined ? texts.endAll() : texts.take(event))),
    );
  };
}

/**
 * Changes the texts of a reply with a function, wherever a stream cuts them. `window` is the number of characters that are held back: one less
 * than the longest text that `change` looks for. `change` receives only text that was not emitted yet, so that it cannot look behind.
 * Default kinds: `text`. Declare `reads: 'content'`, or send the call with `decoded: true`.
 *
 * @example
 * return (await next(call)).pipe(mapText((text) => text.replaceAll('moonshine', '*********'), { window: 8 }));
 */
export function mapText(
  change: (text: string, info: TextBlockInfo) => string,
  { window = 0, kinds = ['text'] }: { readonly window?: number; readonly kinds?: readonly TextKind[] } = {},
): MonoTypeOperatorFunction<GatewayEvent> {
  return transformText((info) =>
    kinds.includes(info.kind) ? new Windowed((text) => change(text, info), window) : undefined,
  );
}

/** Maximum number of characters that are held beyond the window where no safe cut is found. */
const mostHeld = 16_384;

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd8_00 && unit <= 0xdb_ff;
}

/** Applies a function to a text in pieces, and holds back its end. */
class Windowed implements TextTransformer {
  readonly #change: (text: string) => string;
  readonly #window: number;
  #held = '';

  constructor(change: (text: string) => string, window: number) {
    this.#change = change;
    this.#window = window;
  }

  push(text: string): string {
    this.#held += text;
    const held = this.#held;
    const last = held.length - this.#window;
    if (last <= 0) return '';
    const whole = this.#change(held);
    // Matches that begin before `last` are complete. A cut is safe where the function gives the same result for both sides separately.
    for (let cut = last; cut > 0 && cut >= last - this.#window; cut -= 1) {
      if (isHighSurrogate(held.charCodeAt(cut - 1))) continue;
      const before = held.slice(0, cut);
      const first = this.#change(before);
      if (!whole.startsWith(first) || first + this.#change(held.slice(cut)) !== whole) continue;
      this.#held = held.slice(cut);
      return first;
    }
    if (held.length < mostHeld + this.#window) return '';
    // No cut is safe. Without this bound the function would be applied to the whole text for each piece.
    this.#held = '';
    return whole;
  }

  end(): string {
    const rest = this.#held;
    this.#held = '';
    return rest === '' ? '' : this.#change(rest);
  }
}

interface OpenText {
  readonly info: TextBlockInfo;
  readonly transformer: TextTransformer | undefined;
}

/** The texts of one reply that have begun and not ended. */
class OpenTexts {
  readonly #make: (info: TextBlockInfo) => TextTransformer | undefined;
  readonly #open = new Map<number, OpenText>();
  readonly #tools = new Map<number, Pick<TextBlockInfo, 'tool' | 'custom'>>();

  constructor(make: (info: TextBlockInfo) => TextTransformer | undefined) {
    this.#make = make;
  }

  take(event: GatewayEvent): readonly GatewayEvent[] {
    if (event.type === 'tool-start')
      this.#tools.set(event.block, { tool: event.name, custom: event.custom === true });
    const kind = kindOfDelta[event.type];
    if (kind !== undefined) return this.#changed(event, kind);
    if (!ends.has(event.type) || !('block' in event)) return [event];
    return [...this.#end(event.block), event];
  }

  /** Returns all held text, because a reply may end without the end of its last block. */
  endAll(): readonly GatewayEvent[] {
    return [...this.#open.keys()].flatMap((block) => this.#end(block));
  }

  #changed(event: GatewayEvent, kind: TextKind): readonly GatewayEvent[] {
    const text = textOf(event);
    if (text === undefined || !('block' in event)) return [event];
    const transformer = this.#of(event.block, event.choice, kind);
    if (transformer === undefined) return [event];
    const changed = transformer.push(text);
    if (changed === text) return [event];
    return withText(event, changed);
  }

  #of(block: number, choice: number, kind: TextKind): TextTransformer | undefined {
    let open = this.#open.get(block);
    if (open === undefined) {
      const info = { kind, block, choice, ...this.#tools.get(block) };
      open = { info, transformer: this.#make(info) };
      this.#open.set(block, open);
    }
    return open.transformer;
  }

  #end(block: number): readonly GatewayEvent[] {
    const open = this.#open.get(block);
    this.#open.delete(block);
    this.#tools.delete(block);
    const rest = open?.transformer?.end() ?? '';
    return open === undefined || rest === '' ? [] : [deltaOf(open.info, rest)];
  }
}

function textOf(event: GatewayEvent): string | undefined {
  if (event.type === 'tool-delta') return event.input;
  if (event.type === 'media-delta') return event.transcript;
  return 'text' in event ? event.text : undefined;
}

/** Returns the delta with another text, or nothing where neither text nor data is left. */
function withText(event: GatewayEvent, text: string): readonly GatewayEvent[] {
  switch (event.type) {
    case 'text-delta': {
      const { logprobs: _of, ...rest } = event;
      return text === '' ? [] : [{ ...rest, text }];
    }
    case 'reasoning-delta':
    case 'refusal-delta':
      return text === '' ? [] : [{ ...event, text }];
    case 'tool-delta':
      return text === '' ? [] : [{ ...event, input: text }];
    case 'media-delta': {
      const { transcript: _before, ...rest } = event;
      if (text !== '') return [{ ...rest, transcript: text }];
      return rest.data === undefined ? [] : [rest];
    }
    default:
      return [event];
  }
}

function deltaOf({ kind, block, choice }: TextBlockInfo, text: string): GatewayEvent {
  switch (kind) {
    case 'text':
      return { type: 'text-delta', block, choice, text };
    case 'reasoning':
      return { type: 'reasoning-delta', block, choice, text };
    case 'refusal':
      return { type: 'refusal-delta', block, choice, text };
    case 'arguments':
      return { type: 'tool-delta', block, choice, input: text };
    case 'transcript':
      return { type: 'media-delta', block, choice, transcript: text };
  }
}

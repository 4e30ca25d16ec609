import type { Citation } from '../../model/chat.ts';
import type { FinishReason } from '../../model/event.ts';
import type { Extra } from '../../model/extra.ts';
import type { JsonObject } from '../../model/json.ts';
import type { CallInput } from './call-input.ts';

/** What a block holds. */
export type BlockKind = 'text' | 'reasoning' | 'tool' | 'media' | 'opaque';

/** The block that has the floor. */
export interface OpenBlock {
  readonly block: number;
  readonly kind: BlockKind;
  /** What only some format knows of its start. */
  readonly extra: Extra | undefined;
  /** Its place in the reply; undefined until its first frame is out, because no block may stay empty. */
  index: number | undefined;
  /** Sources quoted before the first word. */
  citations: JsonObject[];
  /** A call's input. */
  input: CallInput | undefined;
}

/** How a format spells the pieces of its blocks. */
export interface BlockWords {
  readonly format: string;
  readonly text: (text: string) => JsonObject;
  readonly thinking: (text: string) => JsonObject;
  readonly input: (json: string) => JsonObject;
  readonly citation: (citation: JsonObject) => JsonObject;
  /** A source in the format's words; undefined for one that it has no place for. */
  readonly citationOf: (citation: Citation) => JsonObject | undefined;
  /** An empty piece of an input is said, too. */
  readonly emptyInputs?: true;
  /** An id for a call whose provider gave none. */
  readonly freshCallId: () => string;
  /** Neutral reason → stop reason. */
  readonly stops: Readonly<Record<FinishReason, string>>;
  /** What the first frame of a text or of reasoning holds; absent where those begin with their first piece. */
  readonly starts?: Readonly<Record<'text' | 'reasoning', JsonObject>>;
}

/** Types of the stream encoder that Messages and Converse share: an open block, and how a format spells the frames of its blocks. */
import type { Citation } from '../../model/chat.ts';
import type { FinishReason } from '../../model/event.ts';
import type { Extra } from '../../model/extra.ts';
import type { JsonObject } from '../../model/json.ts';
import type { CallInput } from './call-input.ts';

/** Kind of content that a block holds. */
export type BlockKind = 'text' | 'reasoning' | 'tool' | 'media' | 'opaque';

/** The block that is open. */
export interface OpenBlock {
  readonly block: number;
  readonly kind: BlockKind;
  /** Fields of its start event that only one format knows. */
  readonly extra: Extra | undefined;
  /** Its place in the reply; undefined until its first frame is out, because no block may stay empty. */
  index: number | undefined;
  /** Sources quoted before the first word. */
  citations: JsonObject[];
  /** A call's input. */
  input: CallInput | undefined;
}

/** Frames and names by which a format spells the pieces of its blocks. */
export interface BlockWords {
  readonly format: string;
  readonly text: (text: string) => JsonObject;
  readonly thinking: (text: string) => JsonObject;
  readonly input: (json: string) => JsonObject;
  readonly citation: (citation: JsonObject) => JsonObject;
  /** A source in the format's words; undefined for one that it has no place for. */
  readonly citationOf: (citation: Citation) => JsonObject | undefined;
  /** Empty pieces of an input are sent too. */
  readonly emptyInputs?: true;
  /** An id for a call whose provider gave none. */
  readonly freshCallId: () => string;
  /** Neutral reason → stop reason. */
  readonly stops: Readonly<Record<FinishReason, string>>;
  /** Content of the first frame of a text or of reasoning; absent where those begin with their first piece. */
  readonly starts?: Readonly<Record<'text' | 'reasoning', JsonObject>>;
}

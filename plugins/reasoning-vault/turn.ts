/** Types of a stored turn, its reasoning and its maker, and the rule that decides which targets may receive the reasoning. */
import type { JsonObject, Proof, Target } from 'sluice';

/** Model and account that generated reasoning. Others may refuse it. */
export interface Maker {
  /** Kind of the channel, which identifies the provider. */
  readonly kind: string;
  readonly channel: string;
  /** Id of the channel's key, which identifies the account. Absent in entries of earlier versions. */
  readonly key?: string;
  /** The provider's name of the model. */
  readonly model: string;
}

/** One block of reasoning, byte for byte, and its position in the turn. */
export interface Thought {
  readonly text: string;
  readonly proof?: Proof;
  /** Number of tool calls before it. */
  readonly calls: number;
  /** True where text of the answer came before it. */
  readonly spoken: boolean;
  /** Format-specific members. */
  readonly extra?: { readonly [format: string]: JsonObject };
}

/** A tool call of the turn, with its proof. */
export interface CalledTool {
  readonly id: string;
  readonly name: string;
  readonly proof?: Proof;
  /** Object in which the provider sent the proof, where it must be sent back in the same member. */
  readonly beside?: JsonObject;
}

/** A turn of the model with tool calls: the parts that a client may not send back. */
export interface Turn {
  readonly maker: Maker;
  /** Format of the request to the provider. */
  readonly format: string;
  readonly thoughts: readonly Thought[];
  readonly calls: readonly CalledTool[];
}

/** Returns the maker of a target's responses. */
export function makerOf({ channel, key, model }: Target): Maker {
  return { kind: channel.kind, channel: channel.id, key: key.id, model };
}

/** Returns true when the target uses the maker's account, as far as that is known. */
export function isAccountOf(maker: Maker, { channel, key }: Target): boolean {
  return maker.channel === channel.id && (maker.key === undefined || maker.key === key.id);
}

/** Returns true when a turn's reasoning may be sent to this target. Encrypted reasoning can only be read by the account that made it. */
export function fits(turn: Turn, target: Target, format: string): boolean {
  const { kind, model } = turn.maker;
  if (turn.format !== format || kind !== target.channel.kind || model !== target.model) return false;
  return isAccountOf(turn.maker, target) || !proofsOf(turn).some((proof) => proof.kind === 'encrypted');
}

/** Returns all proofs of a turn. */
export function proofsOf({ thoughts, calls }: Pick<Turn, 'thoughts' | 'calls'>): readonly Proof[] {
  return [...thoughts, ...calls].flatMap(({ proof }) => proof ?? []);
}

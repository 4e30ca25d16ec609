import type { JsonObject, Proof, Target } from 'sluice';

/** Who made a piece of reasoning: nobody else can be trusted to take it back. */
export interface Maker {
  /** The channel kind: stands for the provider. */
  readonly kind: string;
  readonly channel: string;
  /** The id of the channel's key: an account. Absent in what was kept before keys were. */
  readonly key?: string;
  /** The model's name there. */
  readonly model: string;
}

/** One block of reasoning, byte for byte, and where it stood in its turn. */
export interface Thought {
  readonly text: string;
  readonly proof?: Proof;
  /** How many calls came before it. */
  readonly calls: number;
  /** Words of the answer came before it. */
  readonly spoken: boolean;
  /** What only the provider's format knows of it. */
  readonly extra?: { readonly [format: string]: JsonObject };
}

/** A call of the turn, with the proof that stood on it. */
export interface CalledTool {
  readonly id: string;
  readonly name: string;
  readonly proof?: Proof;
  /** The object in which the provider sent the proof, where it wants it back in the same place. */
  readonly beside?: JsonObject;
}

/** A turn of the model that called tools, as far as a client may forget it. */
export interface Turn {
  readonly maker: Maker;
  /** The format that was spoken to the provider. */
  readonly format: string;
  readonly thoughts: readonly Thought[];
  readonly calls: readonly CalledTool[];
}

/** The maker of what a target answers. */
export function makerOf({ channel, key, model }: Target): Maker {
  return { kind: channel.kind, channel: channel.id, key: key.id, model };
}

/** True when the target uses the account that made it, as far as that is known. */
export function isAccountOf(maker: Maker, { channel, key }: Target): boolean {
  return maker.channel === channel.id && (maker.key === undefined || maker.key === key.id);
}

/** True when a turn's reasoning may go to this target: what is encrypted is readable by the account that made it, and by no other. */
export function fits(turn: Turn, target: Target, format: string): boolean {
  const { kind, model } = turn.maker;
  if (turn.format !== format || kind !== target.channel.kind || model !== target.model) return false;
  return isAccountOf(turn.maker, target) || !proofsOf(turn).some((proof) => proof.kind === 'encrypted');
}

/** Every proof of a turn. */
export function proofsOf({ thoughts, calls }: Pick<Turn, 'thoughts' | 'calls'>): readonly Proof[] {
  return [...thoughts, ...calls].flatMap(({ proof }) => proof ?? []);
}

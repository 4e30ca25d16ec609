/**
 * A member of requests that a model refuses.
 *
 * @example
 * const traits: ModelTraits = { refusedMembers: [{ path: 'logit_bias' } satisfies RefusedMember] };
 */
export interface RefusedMember {
  /**
   * Dotted path in the provider's request. Letter case, `_` and `-` make no difference, because providers name members in other spellings than
   * they read. A path of one name also stands for that name inside `generationConfig`, `inferenceConfig` and `additionalModelRequestFields`.
   */
  readonly path: string;
  /** Name under which the provider takes the value. Absent: the member is removed. */
  readonly as?: string;
  /** Name of a member beside it: the provider refuses the two together, and each of them alone is fine. */
  readonly beside?: string;
}

/**
 * Members to take out of a request before it is sent.
 *
 * @example
 * return next(call.with({ refused: { members: [{ path: 'logit_bias' }] } }));
 */
export interface RefusedMembers {
  readonly members: readonly RefusedMember[];
  /** Called before the request is sent, with those that stood in it. A throw ends the attempt with that error. */
  found?(members: readonly TakenMember[]): void;
}

/**
 * A member that was taken out of a request.
 *
 * @example
 * const paths = taken.map(({ spelled }: TakenMember) => spelled);
 */
export interface TakenMember extends RefusedMember {
  /** Dotted path as the request had it. */
  readonly spelled: string;
}

/**
 * Returns the form of a name in which all spellings of one member are equal: `maxTokens`, `max_tokens` and `max-tokens`.
 *
 * @example
 * const isLimit = plainMember(path) === plainMember('max_tokens');
 */
export function plainMember(name: string): string {
  return /[^a-z0-9.]/.test(name) ? name.toLowerCase().replaceAll(/[_-]/g, '') : name;
}

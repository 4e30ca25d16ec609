import type { ChatRequest } from '../../../model/chat.ts';
import type { MutableObject } from '../../../model/json.ts';
import type { EncodeTarget } from '../../../sdk/format.ts';
import { writingOf, type Writing as SharedWriting } from '../../_shared/writing.ts';
import { formatName } from '../wire.ts';

/** Longest function name. */
const longestName = 128;

/** What the encoders of one request share. */
export interface Writing extends SharedWriting {
  /** The names of the functions that the history calls, by the ids of the calls. */
  readonly calledNames: ReadonlyMap<string, string>;
  /** The client's names of the free-text tools that go as functions. */
  readonly customTools: string[];
  /** Parts from which a proof of another vendor was taken off. */
  readonly unproved: Set<MutableObject>;
}

/** What the encoders of this request share. */
export function startWriting(request: ChatRequest, target: EncodeTarget): Writing {
  const writing = writingOf(formatName, request, target, longestName, /[A-Za-z0-9_.:-]/, /[A-Za-z_]/);
  const calledNames = new Map<string, string>();
  for (const { content } of request.messages)
    for (const block of content) if (block.type === 'tool-call') calledNames.set(block.id, block.name);
  return {
    ...writing,
    // A native client's own spelling is its own affair.
    ...(writing.native ? { toolName: (tool: string) => tool } : {}),
    calledNames,
    customTools: [],
    unproved: new Set(),
  };
}

/** Models that are asked by level (3 and later) want signatures, and take media in results and a resolution for each part. */
export function asksByLevel({ target: { traits } }: Writing): boolean {
  return traits.reasoning === undefined || traits.reasoning === 'level';
}

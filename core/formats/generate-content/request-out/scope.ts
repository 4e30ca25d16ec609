/** State that the encoders of one generateContent request share. */
import type { ChatRequest } from '../../../model/chat.ts';
import type { MutableObject } from '../../../model/json.ts';
import type { EncodeTarget } from '../../../sdk/format.ts';
import { writingOf, type Writing as SharedWriting } from '../../_shared/writing.ts';
import { formatName } from '../wire.ts';

/** Longest function name. */
const longestName = 128;

/** State that the encoders of one request share. */
export interface Writing extends SharedWriting {
  /** The names of the functions that the history calls, by the ids of the calls. */
  readonly calledNames: ReadonlyMap<string, string>;
  /** The client's names of the free-text tools that go as functions. */
  readonly customTools: string[];
  /** Parts from which another vendor's signature was removed. */
  readonly unproved: Set<MutableObject>;
}

/** Returns the shared state for this request. */
export function startWriting(request: ChatRequest, target: EncodeTarget): Writing {
  const writing = writingOf(formatName, request, target, longestName, /[A-Za-z0-9_.:-]/, /[A-Za-z_]/);
  const calledNames = new Map<string, string>();
  for (const { content } of request.messages)
    for (const block of content) if (block.type === 'tool-call') calledNames.set(block.id, block.name);
  return {
    ...writing,
    // Tool names of clients of this format are sent unchanged.
    ...(writing.native ? { toolName: (tool: string) => tool } : {}),
    calledNames,
    customTools: [],
    unproved: new Set(),
  };
}

/** Returns true for models that take a thinking level (3 and later): these require signatures, and accept media in results and a resolution per part. */
export function asksByLevel({ target: { traits } }: Writing): boolean {
  return traits.reasoning === undefined || traits.reasoning === 'level';
}

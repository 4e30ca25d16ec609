import type { Block, ChatRequest } from '../../../model/chat.ts';
import type { Inlined } from '../../_shared/json-schema/references.ts';
import { ToolNames } from '../../_shared/tool-ids.ts';
import type { EncodeTarget } from '../../../sdk/format.ts';
import { formatName } from '../wire.ts';

/** Longest function name. */
const longestName = 128;

/** What the parts of one request's encoding share. */
export class Encoding {
  readonly target: EncodeTarget;
  /** The client wrote this format: everything goes back as it was. */
  readonly native: boolean;
  readonly names: ToolNames;
  readonly customTools: string[] = [];
  readonly inlined: Inlined = { characters: 0 };
  readonly #callNames = new Map<string, string>();

  constructor(request: ChatRequest, target: EncodeTarget) {
    this.target = target;
    this.native = request.format === formatName;
    this.names = new ToolNames(
      Math.min(target.traits.toolNameLimit ?? longestName, longestName),
      /[A-Za-z0-9_.:-]/,
      /[A-Za-z_]/,
    );
    for (const message of request.messages) for (const block of message.content) this.#note(block);
  }

  #note(block: Block): void {
    if (block.type === 'tool-call') this.#callNames.set(block.id, block.name);
  }

  /** A function's name as the provider takes it; a native client's own spelling is its own affair. */
  toolName(tool: string): string {
    return this.native ? tool : this.names.there(tool);
  }

  /** The name of the function whose call had this id. */
  calledName(id: string): string {
    return this.#callNames.get(id) ?? 'unknown';
  }
}

/** Collects the paths of dropped fields, each once, and formats them for the `x-sluice-loss` header. */
import type { GatewayEvent } from '../../model/event.ts';
import type { Extra, Loss } from '../../model/extra.ts';
import type { ReplyContext } from '../../sdk/format.ts';
import { isText } from './fields.ts';
import { dropForeignReply } from './foreign.ts';

/** Maximum number of paths of one call that are reported as dropped: more than a header or a line of the log holds. */
const maxPaths = 1000;

/** Set of the paths that have been reported as dropped. After the first thousand no path counts as new. */
export class ReportedPaths {
  readonly #reported = new Set<string>();

  /** Adds a path. True when it was not in the set and the set is not full. */
  isNew(path: string): boolean {
    if (this.#reported.size === maxPaths || this.#reported.has(path)) return false;
    this.#reported.add(path);
    return true;
  }
}

/** Returns the paths of dropped fields, as the client spells them: printable, without commas in a name, and about 2,000 characters at most. */
export function describeLosses(losses: readonly Loss[]): string {
  const paths = new Set(
    losses.map(({ path }) => path.slice(0, 200).replaceAll(/[^\x21-\x2b\x2d-\x7e]/g, '_')),
  );
  paths.delete('');
  let text = '';
  for (const path of paths) {
    if (text.length + path.length > 2000) return `${text}, ...`;
    text += text === '' ? path : `, ${path}`;
  }
  return text;
}

/** Reports the fields of a reply that a client's format cannot carry, each once. */
export class Losses {
  readonly #format: string;
  readonly #context: ReplyContext;
  readonly #reported = new ReportedPaths();

  constructor(format: string, context: ReplyContext) {
    this.#format = format;
    this.#context = context;
  }

  drop(path: string): void {
    if (this.#reported.isNew(path)) this.#context.drop(path);
  }

  /** Reports the fields of an event that only another format knows. */
  dropForeign(extra: Extra | undefined): void {
    if (extra !== undefined) dropForeignReply(extra, this.#format, (path) => this.drop(path));
  }

  /** Returns true for a part that this format knows; another's has no place here and is lost. */
  isOwn({ format, value }: Extract<GatewayEvent, { readonly type: 'opaque' }>): boolean {
    if (format === this.#format) return true;
    this.drop(`opaque.${isText(value.type) ? value.type : format}`);
    return false;
  }
}

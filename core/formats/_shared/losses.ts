import type { GatewayEvent } from '../../model/event.ts';
import type { Extra, Loss } from '../../model/extra.ts';
import type { ReplyContext } from '../../sdk/format.ts';
import { isText } from './fields.ts';
import { dropForeignReply } from './foreign.ts';

/** How many places of one call can be told of as lost: more than a header or a line of the log holds. */
const mostTold = 1000;

/** Which places have been told of as lost, each once. Behind the first thousand there is nothing new: nobody could be told of it. */
export class ToldPlaces {
  readonly #told = new Set<string>();

  /** True for the first time, as long as there is room for more. */
  isNew(path: string): boolean {
    if (this.#told.size === mostTold || this.#told.has(path)) return false;
    this.#told.add(path);
    return true;
  }
}

/** The places of what was lost, in the client's words: printable, without commas in a name, and about 2,000 characters at most. */
export function toldLosses(losses: readonly Loss[]): string {
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

/** What a reply loses on its way to a client of this format. Each loss is reported once. */
export class Losses {
  readonly #format: string;
  readonly #context: ReplyContext;
  readonly #told = new ToldPlaces();

  constructor(format: string, context: ReplyContext) {
    this.#format = format;
    this.#context = context;
  }

  drop(path: string): void {
    if (this.#told.isNew(path)) this.#context.drop(path);
  }

  /** What only another format knows of an event. */
  dropForeign(extra: Extra | undefined): void {
    if (extra !== undefined) dropForeignReply(extra, this.#format, (path) => this.drop(path));
  }

  /** True for a part that this format knows; another's has no place here and is lost. */
  isOwn({ format, value }: Extract<GatewayEvent, { readonly type: 'opaque' }>): boolean {
    if (format === this.#format) return true;
    this.drop(`opaque.${isText(value.type) ? value.type : format}`);
    return false;
  }
}

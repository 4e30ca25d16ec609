import type { GatewayEvent } from '../../model/event.ts';
import type { Extra } from '../../model/extra.ts';
import type { ReplyContext } from '../../sdk/format.ts';
import { isText } from './fields.ts';
import { loseForeignReply } from './foreign.ts';

/** What a reply loses on its way to a client of this format. Each loss is reported once. */
export class Losses {
  readonly #format: string;
  readonly #context: ReplyContext;
  readonly #told = new Set<string>();

  constructor(format: string, context: ReplyContext) {
    this.#format = format;
    this.#context = context;
  }

  lose(path: string): void {
    if (this.#told.has(path)) return;
    this.#told.add(path);
    this.#context.lose(path);
  }

  /** What only another format knows of an event. */
  loseForeign(extra: Extra | undefined): void {
    if (extra !== undefined) loseForeignReply(extra, this.#format, (path) => this.lose(path));
  }

  /** True for a part that this format knows; another's has no place here and is lost. */
  isOwn({ format, value }: Extract<GatewayEvent, { readonly type: 'opaque' }>): boolean {
    if (format === this.#format) return true;
    this.lose(`opaque.${isText(value.type) ? value.type : format}`);
    return false;
  }
}

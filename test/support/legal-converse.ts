import type { WireFrame } from '../../core/sdk/format.ts';
import { isObject, type JsonObject } from '../../core/model/json.ts';

/** Returns the problems that clients would have with a stream of this format; empty if there are none. */
export function checkLegal(frames: WireFrame[]): string[] {
  const checker = new Checker();
  frames.forEach((frame, index) => checker.frame(frame, index));
  return checker.end();
}

/** Kinds of blocks that each delta may belong to; the last two begin with a frame of their own. */
const kinds = ['text', 'reasoningContent', 'citation', 'toolUse', 'image'];
const started: ReadonlySet<string> = new Set(['toolUse', 'image']);

class Checker {
  readonly #problems: string[] = [];
  readonly #toolIds = new Set<unknown>();
  #report: (problem: string) => void = () => {};
  #started = false;
  #open: { readonly index: unknown; kind: string | undefined } | undefined;
  #next = 0;
  #stopped = false;
  #over: string | undefined;

  frame(frame: WireFrame, at: number): void {
    this.#report = (problem) => void this.#problems.push(`frame ${at}: ${problem}`);
    if ('text' in frame) return this.#report(`text ${frame.text}`);
    const { event, json } = frame;
    if (event === undefined) return this.#report('no name');
    if (this.#over !== undefined) this.#report(`${event} after ${this.#over}`);
    if (event === 'error') {
      this.#over = event;
      const { __type: kind, message } = json;
      if (typeof kind !== 'string' || typeof message !== 'string') this.#report('no kind or message');
      return;
    }
    if (event !== 'messageStart' && !this.#started) this.#report(`${event} before messageStart`);
    this.#known(event, json);
  }

  end(): string[] {
    if (this.#over === undefined) this.#problems.push('no metadata and no error');
    return this.#problems;
  }

  #known(event: string, json: JsonObject): void {
    switch (event) {
      case 'messageStart':
        if (this.#started) this.#report('a second messageStart');
        this.#started = true;
        if (json.role !== 'assistant') this.#report(`role ${String(json.role)}`);
        return;
      case 'contentBlockStart':
        return this.#blockStart(json);
      case 'contentBlockDelta':
        return this.#blockDelta(json);
      case 'contentBlockStop':
        if (this.#open === undefined || this.#open.index !== json.contentBlockIndex)
          this.#report('the end of a block that is not open');
        this.#open = undefined;
        return;
      case 'messageStop':
        if (this.#open !== undefined) this.#report('messageStop inside a block');
        if (typeof json.stopReason !== 'string') this.#report('no stopReason');
        this.#stopped = true;
        return;
      case 'metadata':
        return this.#metadata(json);
      default:
    }
  }

  #begin(index: unknown, kind: string | undefined): void {
    if (this.#open !== undefined) this.#report('a block starts inside another');
    if (this.#stopped) this.#report('a block after messageStop');
    if (index !== this.#next) this.#report(`index ${String(index)} instead of ${this.#next}`);
    this.#next += 1;
    this.#open = { index, kind };
  }

  #blockStart({ contentBlockIndex, start }: JsonObject): void {
    const kind = isObject(start) ? Object.keys(start)[0] : undefined;
    this.#begin(contentBlockIndex, kind);
    if (!isObject(start) || !isObject(start.toolUse)) return;
    const { toolUseId: id, name } = start.toolUse;
    if (typeof id !== 'string' || !/^[A-Za-z0-9_-]{1,64}$/.test(id)) this.#report(`tool id ${String(id)}`);
    if (this.#toolIds.has(id)) this.#report(`tool id ${String(id)} twice`);
    this.#toolIds.add(id);
    if (typeof name !== 'string') this.#report('a tool without a name');
  }

  #blockDelta({ contentBlockIndex, delta }: JsonObject): void {
    if (!isObject(delta)) return this.#report('a piece of nothing');
    const kind = kinds.find((one) => delta[one] !== undefined);
    if (this.#open === undefined) {
      if (kind !== undefined && started.has(kind)) this.#report(`a piece of ${kind} without its start`);
      this.#begin(contentBlockIndex, kind);
    }
    const open = this.#open;
    if (open?.index !== contentBlockIndex) this.#report('a piece of a block that is not open');
    const belongs = kind === 'citation' ? 'text' : kind;
    if (open !== undefined && kind !== undefined && open.kind !== belongs && open.kind !== kind)
      this.#report(`${kind} in ${String(open.kind)}`);
    if (kind === 'toolUse' && isObject(delta.toolUse) && typeof delta.toolUse.input !== 'string')
      this.#report('an input that is no text');
  }

  #metadata({ usage, metrics }: JsonObject): void {
    if (!this.#stopped) this.#report('metadata before messageStop');
    this.#over = 'metadata';
    if (!isObject(usage)) return this.#report('no usage');
    for (const name of ['inputTokens', 'outputTokens', 'totalTokens'])
      if (typeof usage[name] !== 'number') this.#report(`usage.${name} is no number`);
    if (!isObject(metrics) || typeof metrics.latencyMs !== 'number') this.#report('no metrics');
  }
}

/** Texts of messages, for all destinations. */
import type { Item, Message } from '../alert.ts';

/** Returns the state of an alert as a word: `Resolved`, or its severity. */
export function wordOf({ state, severity }: Item): string {
  const word = state === 'resolved' ? 'resolved' : severity;
  return word.charAt(0).toUpperCase() + word.slice(1);
}

/** Returns one line for a subject or a heading. */
export function titleOf({ items, more }: Message): string {
  const [first] = items;
  if (first === undefined) return 'Sluice';
  if (items.length + more === 1) return `Sluice: ${wordOf(first)}: ${cut(first.text, 120)}`;
  const open = items.filter(({ state }) => state === 'firing').length;
  const also = more > 0 ? `, ${more} further` : '';
  return `Sluice: ${open} open, ${items.length - open} resolved${also}`;
}

/** Returns one line for each alert, as `write` spells it. */
export function linesOf({ items, more }: Message, write: (item: Item) => string): string[] {
  return [...items.map(write), ...(more === 0 ? [] : [`… and ${more} further alerts: the page lists them.`])];
}

/** Returns the address of the view that shows more; undefined where the options give no base URL. */
export function linkOf({ view }: Item, base: string | undefined): string | undefined {
  return base === undefined ? undefined : `${base.replace(/\/+$/, '')}/dashboard/#/${view}`;
}

/** Cuts a text at a number of characters, without halving one. */
export function cut(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1).replace(/[\uD800-\uDBFF]$/, '')}…`;
}

/** Throws unless the status shows that the destination accepted the message. */
export function checkStatus(status: number): void {
  if (status >= 200 && status < 300) return;
  const reason = status >= 300 && status < 400 ? ', a redirect, which is not followed' : '';
  throw new Error(`It returned status ${status}${reason}.`);
}

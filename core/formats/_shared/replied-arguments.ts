/** Reads the arguments of a tool call in a provider's reply, which some providers write as an object and some as text. */
import { brokenArguments } from '../../json/arguments.ts';
import type { JsonValue } from '../../model/json.ts';
import { unusableResponse } from './upstream-error/index.ts';

/** Returns the arguments of a call in a provider's reply as JSON text: some write them as text already. Throws 502 for what is nested too deeply. */
export function repliedArguments(args: JsonValue | undefined): string {
  if (typeof args === 'string') return args;
  try {
    return brokenArguments(args ?? {}) ?? JSON.stringify(args ?? {});
  } catch (cause) {
    throw unusableResponse('sent a tool call nested too deeply', cause);
  }
}

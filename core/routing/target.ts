/** Prepares a call for one target: its system prompt, the codec of the channel's format, and support for several choices. */
import type { Call, Channel, Target } from '../sdk/call.ts';
import type { Codecs, Format } from '../sdk/format.ts';
import { formatFor } from '../sdk/spoken-format.ts';

/** Returns the call with its target, and for chats with the system prompt of the channel. */
export function addressed(call: Call, target: Target): Call {
  const { systemPrompt } = target.channel;
  return call.with(
    systemPrompt === undefined || call.operation !== 'chat' ? { target } : { target, systemPrompt },
  );
}

/** Returns the codec of an operation in the format spoken to a channel: the channel's own, or that of a public format. */
export function codecFor<O extends keyof Codecs>(
  format: string,
  operation: O,
  channel: Pick<Channel, 'codecs'> | undefined,
  formatNamed: (name: string) => Format | undefined,
): Codecs[O] | undefined {
  const own = channel?.codecs[operation];
  return own?.format === format ? own : formatNamed(format)?.codecs[operation];
}

/** Returns true when the target's provider makes one answer for each request, so that several answers (`n`) take several requests. */
export function isSingleChoice(
  call: Call,
  target: Target,
  formatNamed: (name: string) => Format | undefined,
): boolean {
  if (target.traits.refuses?.includes('choices') === true) return true;
  const format = formatFor(call, target);
  return format !== undefined && codecFor(format, 'chat', target.channel, formatNamed)?.singleChoice === true;
}

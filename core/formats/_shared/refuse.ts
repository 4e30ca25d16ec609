import { unsupportedContent, GatewayError } from '../../sdk/errors.ts';
import type { ChatRequest, Tool } from '../../model/chat.ts';
import type { EncodeTarget } from '../../sdk/format.ts';

/**
 * 400 for input content that a format cannot carry; nothing and a report where the operator prefers that or the conversation can do
 * without. `what` says what it is, with its article.
 */
export function refuseContent(
  piece: { readonly at?: string; readonly spare?: boolean },
  what: string,
  format: string,
  target: EncodeTarget,
): undefined {
  const at = piece.at ?? 'messages';
  if (target.unsupported === 'refuse' && piece.spare !== true) throw unsupportedContent(at, what, format);
  target.drop(at, 'content');
  return undefined;
}

/** 400 for a tool that a format has not; nothing and a report where the operator prefers that. */
export function refuseTool(tool: Tool, format: string, target: EncodeTarget): undefined {
  const at = tool.at ?? 'tools';
  if (target.unsupported === 'drop') {
    target.drop(at, 'content');
    return undefined;
  }
  const from = tool.type === 'opaque' ? ` of ${tool.format}` : '';
  throw new GatewayError(
    'unsupported_tool',
    `${at}: the tool "${tool.name ?? tool.type}"${from} cannot be sent to a ${format} channel.`,
    { param: at },
  );
}

/** 400 for a wish for several answers, where a format gives one. */
export function refuseChoices({ settings }: ChatRequest, format: string): void {
  if (settings.choices === undefined || settings.choices <= 1) return;
  throw new GatewayError(
    'unsupported_value',
    `settings.choices must be 1: a ${format} channel gives one answer.`,
    { param: 'settings.choices' },
  );
}

/**
 * Refuses content and tools that the target's format does not support with a 400 error, or drops and reports them where the operator set
 * `unsupported: 'drop'`.
 */
import { unsupportedContent, GatewayError } from '../../sdk/errors.ts';
import type { ChatRequest, Tool } from '../../model/chat.ts';
import type { EncodeTarget } from '../../sdk/format.ts';

/**
 * Throws 400 for input content that a format cannot carry. Reports it instead where the operator set `drop`, or where the conversation does not need it
 * (`spare`). `what` names the content, with its article.
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

/** Throws 400 for a tool that a format does not have; reports it instead where the operator set `drop`. */
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

/** Throws 400 for more than one choice, for formats that return one answer. */
export function refuseChoices({ settings }: ChatRequest, format: string): void {
  if (settings.choices === undefined || settings.choices <= 1) return;
  throw new GatewayError(
    'unsupported_value',
    `settings.choices must be 1: a ${format} channel gives one answer.`,
    { param: 'settings.choices' },
  );
}

/** Undoes in a reply what a request had to spell differently. */
import { parseObject, type GatewayEvent } from 'sluice';
import type { EncodedRequest } from 'sluice/channel-kit';
import { withoutBegun } from './without-begun.ts';

type Emit = (event: GatewayEvent) => void;

/** Changes of the request's spelling that the response must undo. */
export type Undoing = Pick<EncodedRequest, 'toolNames' | 'customTools' | 'unwrapTool' | 'begun'>;

/** Returns the changes that the response to an encoded request must undo, without keeping the request. */
export function undoingOf({ toolNames, customTools, unwrapTool, begun }: EncodedRequest): Undoing {
  return {
    ...(toolNames === undefined ? {} : { toolNames }),
    ...(customTools === undefined ? {} : { customTools }),
    ...(unwrapTool === undefined ? {} : { unwrapTool }),
    ...(begun === undefined ? {} : { begun }),
  };
}

/**
 * Gives a reply back in the client's spelling what the request had to spell otherwise: tool names, free-text tools that were wrapped as
 * functions, the forced tool that stands in for structured output, and the beginning that a provider says again.
 */
export function undoSpelling({ toolNames, customTools, unwrapTool, begun }: Undoing, out: Emit): Emit {
  const emit = begun === undefined ? out : withoutBegun(begun, out);
  if (toolNames === undefined && customTools === undefined && unwrapTool === undefined) return emit;
  const buffered = new Map<number, { kind: 'custom' | 'answer'; input: string }>();
  let unwrapped = false;

  return (event) => {
    switch (event.type) {
      case 'tool-start': {
        const name = toolNames?.back(event.name) ?? event.name;
        if (name === unwrapTool) {
          unwrapped = true;
          buffered.set(event.block, { kind: 'answer', input: '' });
          emit({ type: 'text-start', block: event.block, choice: event.choice });
        } else if (customTools?.includes(name)) {
          buffered.set(event.block, { kind: 'custom', input: '' });
          emit({ ...event, name, custom: true });
        } else emit({ ...event, name });
        return;
      }
      case 'tool-delta': {
        const held = buffered.get(event.block);
        if (held === undefined) emit(event);
        else if (held.kind === 'answer')
          emit({ type: 'text-delta', block: event.block, choice: event.choice, text: event.input });
        else held.input += event.input;
        return;
      }
      case 'tool-end': {
        const held = buffered.get(event.block);
        buffered.delete(event.block);
        if (held?.kind === 'answer') emit({ type: 'text-end', block: event.block, choice: event.choice });
        else {
          if (held !== undefined)
            emit({
              type: 'tool-delta',
              block: event.block,
              choice: event.choice,
              input: freeText(held.input),
            });
          emit(event);
        }
        return;
      }
      case 'finish':
        emit(
          unwrapped && event.reason === 'tool-calls'
            ? { type: 'finish', choice: event.choice, reason: 'stop' }
            : event,
        );
        return;
      default:
        emit(event);
    }
  };
}

/** Returns the text in `{"input": "…"}`; what the model wrote when it did not keep to that. */
function freeText(json: string): string {
  const input = parseObject(json)?.input;
  return typeof input === 'string' ? input : json;
}

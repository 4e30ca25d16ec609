/** Runs calls of servers' tools, within limits, and converts the results for models and clients. */
import { GatewayError, type Block, type Call, type JsonObject, type PluginTools } from 'sluice';
import type { ToolResult } from '../mcp/servers/index.ts';
import type { OfferedTool } from './catalog.ts';
import { parseObject } from './json.ts';
import type { Options } from './options.ts';

/** Result of a call of a tool. */
export interface CallResult {
  /** Content for the model. */
  readonly content: readonly Block[];
  /** The same as text alone, for the client. */
  readonly text: string;
  readonly isFailed: boolean;
  /** The error as Responses has it, where the call failed. */
  readonly error?: JsonObject;
}

/** Call that will be run. */
export interface WantedCall {
  readonly offered: OfferedTool;
  readonly input: string;
}

/** Counts what the tools of one call have used. */
export interface ToolMeter {
  /** Bytes of results that are still allowed. */
  bytesLeft: number;
  /** Tools that have run. */
  count: number;
}

/** Options of runs. */
export interface RunContext {
  readonly call: Call;
  readonly limits: Pick<Options, 'concurrency' | 'toolTimeout' | 'maxResultBytes'>;
  readonly meter: ToolMeter;
  /** Runs a tool that has a price. */
  readonly runTool: PluginTools['runTool'];
  /** Ends with the call, and when its time is over. */
  readonly signal: AbortSignal;
  /** True when the model reads images. */
  readonly readsImages: boolean;
  /** Called after each call that has run. */
  ran(server: string, isFailed: boolean): void;
}

/** Runs calls, at most so many at a time. The promises come in the order of the calls and never reject. */
export function runCalls(wanted: readonly WantedCall[], context: RunContext): readonly Promise<CallResult>[] {
  const slots = wanted.map(() => Promise.withResolvers<CallResult>());
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < wanted.length) {
      const index = next;
      next += 1;
      const one = wanted[index];
      // oxlint-disable-next-line no-await-in-loop -- as many at once as there are workers
      if (one !== undefined) slots[index]?.resolve(await runCall(one, context));
    }
  };
  for (let worker = 0; worker < Math.min(context.limits.concurrency, wanted.length); worker += 1) void work();
  return slots.map(({ promise }) => promise);
}

async function runCall({ offered, input }: WantedCall, context: RunContext): Promise<CallResult> {
  const { call, limits, meter, signal } = context;
  const { server, tool } = offered;
  const args = input.trim() === '' ? {} : parseObject(input);
  if (args === undefined) return failure('The arguments of the call are not a JSON object.');
  if (signal.aborted) return failure('The time for tools was over before this one ran.');
  meter.count += 1;
  const room = Math.max(0, meter.bytesLeft);
  try {
    const run = (ending: AbortSignal): Promise<ToolResult> =>
      server.server.callTool(tool.name, args, {
        signal: ending,
        timeoutMs: Math.round(limits.toolTimeout * 1000),
        maxBytes: Math.min(limits.maxResultBytes, room),
      });
    const priced = { name: `${server.label}/${tool.name}`, microDollars: server.price };
    const result =
      server.price === 0
        ? await run(signal)
        : await context.runTool(call, priced, (own) => run(AbortSignal.any([signal, own.signal])));
    meter.bytesLeft -= Buffer.byteLength(JSON.stringify(result));
    const converted = resultOf(result, context.readsImages);
    context.ran(server.label, converted.isFailed);
    return converted;
  } catch (error) {
    context.ran(server.label, true);
    // A result that exceeds the rest of all bytes uses them up, because each round would try again.
    if (room < limits.maxResultBytes) meter.bytesLeft = 0;
    if (signal.aborted && !call.signal.aborted)
      return failure('The time for tools was over before this one had ended.');
    return failure(error instanceof GatewayError ? error.message : 'The tool could not be called.');
  }
}

/** Returns the result of a call that did not run, or that failed. */
export function failure(message: string): CallResult {
  return {
    content: [{ type: 'text', text: message }],
    text: message,
    isFailed: true,
    error: { type: 'mcp_protocol_error', code: -32_603, message },
  };
}

function resultOf(result: ToolResult, readsImages: boolean): CallResult {
  const { content = [], structuredContent, isError } = result;
  const blocks = content.map((part) => blockOf(part, readsImages));
  if (blocks.length === 0 && structuredContent !== undefined)
    blocks.push({ type: 'text', text: JSON.stringify(structuredContent) });
  const text = blocks.map((block) => ('text' in block ? block.text : '[image]')).join('\n');
  const isFailed = isError === true;
  return {
    content: blocks,
    text,
    isFailed,
    ...(isFailed ? { error: { type: 'mcp_tool_execution_error', content: [{ type: 'text', text }] } } : {}),
  };
}

type Part = NonNullable<ToolResult['content']>[number];

/** Converts a part of a result. A text describes what models do not read. */
function blockOf(part: Part, readsImages: boolean): Block {
  switch (part.type) {
    case 'text':
      return { type: 'text', text: part.text };
    case 'image':
      return readsImages
        ? { type: 'image', source: { kind: 'data', data: part.data, mimeType: part.mimeType } }
        : { type: 'text', text: `[image of the type ${part.mimeType}, which this model does not read]` };
    case 'audio':
      return { type: 'text', text: `[sound of the type ${part.mimeType}, which is not passed on]` };
    case 'resource_link':
      return { type: 'text', text: `${part.name}: ${part.uri}` };
    case 'resource':
      return {
        type: 'text',
        text:
          'text' in part.resource
            ? part.resource.text
            : `[file ${part.resource.uri} of the type ${part.resource.mimeType ?? 'unknown'}, which is not passed on]`,
      };
    default:
      return { type: 'text', text: '[content of a kind that is not known]' };
  }
}

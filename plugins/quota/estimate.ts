import { estimateTokens, isChat, type Block, type Call, type Target, type Units } from '#sluice';

/** Tokens that an image is taken for: what a mid-sized picture costs at the large providers. */
const imageTokens = 1_600;

/** Bytes of a document or a recording, in base64, that are taken for one token. */
const mediaBytes = 64;

/** What turns, tools and calls cost besides their words. */
const frame = 4;

/** More than any model takes or gives: keeps nonsense out of sums of money. */
const mostTokens = 1e9;

/** What a call is expected to put in: four bytes a token, and media by their size. */
export function estimateInput(call: Call): number {
  if (!isChat(call.request)) return Math.min(mostTokens, call.codec.estimate?.(call.request).input ?? 0);
  const { system, messages, tools } = call.request;
  let tokens = 0;
  let bytes = 0;
  const add = (blocks: readonly Block[]): void => {
    for (const block of blocks) {
      switch (block.type) {
        case 'text':
        case 'refusal':
        case 'reasoning':
          bytes += Buffer.byteLength(block.text);
          break;
        case 'tool-call':
          bytes += Buffer.byteLength(block.name) + Buffer.byteLength(block.input);
          tokens += frame;
          break;
        case 'tool-result':
          add(block.content);
          tokens += frame;
          break;
        case 'opaque':
          bytes += Buffer.byteLength(JSON.stringify(block.value));
          break;
        default:
          tokens +=
            block.source.kind === 'data' && block.type !== 'image'
              ? Math.ceil(block.source.data.length / mediaBytes)
              : imageTokens;
      }
    }
  };
  for (const { content } of [...system, ...messages]) {
    tokens += frame;
    add(content);
  }
  if (tools.length > 0) bytes += Buffer.byteLength(JSON.stringify(tools));
  return Math.min(mostTokens, tokens + estimateTokens(bytes));
}

/** Fields of a request by which earlier turns are counted as input that only the provider knows. */
const referring = ['previous_response_id', 'conversation'];

/** What comes on top of the words in the request: the longest context of the model when the provider adds turns that it keeps. */
export function unseenInput(call: Call, targets: readonly Target[]): number {
  if (!referring.some((name) => (call.body[name] ?? null) !== null)) return 0;
  return Math.max(0, ...targets.map(({ traits }) => traits.inputLimit ?? 0));
}

/** The most that a call may be answered with: its own limit, the model's, or what is assumed when neither is known. */
export function mostOutput(call: Call, targets: readonly Target[], assumed: number): number {
  const { request } = call;
  if (!isChat(request)) return Math.min(mostTokens, call.codec.estimate?.(request).output ?? 0);
  const { maxOutput, choices = 1 } = request.settings;
  const limits = targets.map(({ traits }) => traits.outputLimit);
  const known = limits.filter((limit) => limit !== undefined);
  const modelLimit = known.length === limits.length && known.length > 0 ? Math.max(...known) : undefined;
  const each =
    maxOutput === undefined
      ? (modelLimit ?? Math.max(assumed, ...known))
      : Math.min(maxOutput, modelLimit ?? maxOutput);
  return Math.min(mostTokens, Math.ceil(Math.max(0, each) * Math.max(1, choices)));
}

/** What a call is expected to use besides tokens. */
export function expectedUnits(call: Call): Units {
  const { request } = call;
  return isChat(request) ? {} : (call.codec.estimate?.(request).units ?? {});
}

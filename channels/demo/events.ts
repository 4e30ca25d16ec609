import { createHash } from 'node:crypto';
import type { FinishReason, GatewayEvent, Usage, Citation, Logprob } from 'sluice';
import { answer, finishOf, ignoresLimit, type Answer, type Part } from './answer.ts';
import type { Question } from './question.ts';
import type { Seals } from './seals.ts';
import { countWords, pieces } from './words.ts';

/** The longest list of answers to one question. */
const mostChoices = 8;

/** Yields the events of a response lazily. */
export function* replyEvents(question: Question, seals: Seals, id: string): Generator<GatewayEvent> {
  const { request, wire, switches, input } = question;
  const meter = new Meter(ignoresLimit(question) ? Infinity : (request.settings.maxOutput ?? Infinity));
  const usage = (): GatewayEvent => ({
    type: 'usage',
    usage: { ...input, output: meter.output, reasoning: meter.reasoning } satisfies Usage,
  });
  yield { type: 'head', id, model: wire.model, created: Math.floor(Date.now() / 1000) };
  if (!switches['no-usage']) yield usage();
  const choices = Math.min(request.settings.choices ?? 1, mostChoices);
  const blocks = { next: 0 };
  for (let choice = 0; choice < choices; choice += 1) {
    meter.begin();
    yield* choiceEvents(question, answer(question, seals, choice), choice, meter, blocks);
  }
  if (!switches['no-usage']) yield usage();
}

/** Counts the tokens of the output, and applies the output limit of each choice. */
class Meter {
  output = 0;
  reasoning = 0;
  readonly #limit: number;
  #left = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  begin(): void {
    this.#left = this.#limit;
  }

  /** Counts `tokens` and returns true, if the output limit allows them. */
  take(tokens: number, thinking = false): boolean {
    if (tokens > this.#left) return false;
    this.#left -= tokens;
    this.output += tokens;
    if (thinking) this.reasoning += tokens;
    return true;
  }
}

interface Blocks {
  next: number;
}

function* choiceEvents(
  question: Question,
  given: Answer,
  choice: number,
  meter: Meter,
  blocks: Blocks,
): Generator<GatewayEvent> {
  const tools = given.parts.filter((part) => part.type === 'tool');
  let complete = true;
  if (question.switches.interleave && tools.length > 1) {
    for (const part of given.parts)
      if (part.type !== 'tool') complete = yield* partEvents(question, part, choice, meter, blocks.next++);
    yield* interleaved(tools, choice, meter, blocks);
  } else {
    for (const part of given.parts) {
      complete = yield* partEvents(question, part, choice, meter, blocks.next++);
      if (!complete) break;
    }
  }
  const reason: FinishReason = complete ? finishOf(question, given) : 'length';
  yield {
    type: 'finish',
    choice,
    reason,
    ...(reason === 'stop-sequence' && given.stopSequence !== undefined
      ? { stopSequence: given.stopSequence }
      : {}),
  };
}

/** Yields the events of one part. Returns false when the output limit cut it. */
function* partEvents(
  question: Question,
  part: Part,
  choice: number,
  meter: Meter,
  block: number,
): Generator<GatewayEvent, boolean> {
  const at = { block, choice };
  switch (part.type) {
    case 'reasoning':
      return yield* reasoningEvents(part, at, meter);
    case 'text':
      return yield* textEvents(question, part, at, meter);
    case 'refusal': {
      yield { type: 'refusal-start', ...at };
      const complete = yield* streamText(part.text, meter, (text) => ({
        type: 'refusal-delta',
        ...at,
        text,
      }));
      yield { type: 'refusal-end', ...at };
      return complete;
    }
    case 'tool': {
      yield { type: 'tool-start', ...at, ...toolHead(part) };
      const complete = yield* streamText(part.input, meter, (input) => ({
        type: 'tool-delta',
        ...at,
        input,
      }));
      yield { type: 'tool-end', ...at };
      return complete;
    }
    case 'media':
      yield { type: 'media-start', ...at, media: part.media, mimeType: part.mimeType };
      yield {
        type: 'media-delta',
        ...at,
        data: part.data,
        ...(part.transcript === undefined ? {} : { transcript: part.transcript }),
      };
      yield { type: 'media-end', ...at };
      return true;
  }
}

interface At {
  readonly block: number;
  readonly choice: number;
}

function* streamText(
  text: string,
  meter: Meter,
  delta: (piece: string) => GatewayEvent,
): Generator<GatewayEvent, boolean> {
  for (const piece of pieces(text)) {
    if (!meter.take(1)) return false;
    yield delta(piece);
  }
  return true;
}

function* reasoningEvents(
  part: Extract<Part, { type: 'reasoning' }>,
  at: At,
  meter: Meter,
): Generator<GatewayEvent, boolean> {
  // Without text and without a proof there is nothing to send: the thinking shows in the usage alone.
  const silent = part.hidden && part.proof === undefined;
  if (!silent) yield { type: 'reasoning-start', ...at };
  let complete = true;
  for (const piece of pieces(part.text)) {
    complete = meter.take(1, true);
    if (!complete) break;
    if (!part.hidden) yield { type: 'reasoning-delta', ...at, text: piece };
  }
  // A signature vouches for the whole text: what was cut short has none.
  const proof = complete ? part.proof : undefined;
  if (!silent) yield { type: 'reasoning-end', ...at, ...(proof === undefined ? {} : { proof }) };
  return complete;
}

function* textEvents(
  question: Question,
  part: Part & { type: 'text' },
  at: At,
  meter: Meter,
): Generator<GatewayEvent, boolean> {
  const { logprobs, topLogprobs } = question.request.settings;
  yield { type: 'text-start', ...at };
  let written = '';
  let complete = true;
  for (const text of part.pieces) {
    // Only long generated texts have pieces of more than one token.
    complete = meter.take(text.length > 100 ? countWords(text) : 1);
    if (!complete) break;
    if (part.seal !== undefined || part.cite) written += text;
    yield {
      type: 'text-delta',
      ...at,
      text,
      ...(logprobs === true ? { logprobs: [logprobOf(text, topLogprobs ?? 0)] } : {}),
    };
  }
  if (part.cite && complete) yield { type: 'citation', ...at, citation: citationOf(written) };
  yield {
    type: 'text-end',
    ...at,
    ...(part.seal !== undefined && complete ? { proof: part.seal(written) } : {}),
  };
  return complete;
}

/** Yields parallel calls whose arguments arrive in turns, as some providers send them. */
function* interleaved(
  tools: readonly (Part & { type: 'tool' })[],
  choice: number,
  meter: Meter,
  blocks: Blocks,
): Generator<GatewayEvent> {
  const open = tools.map((tool) => ({
    at: { block: blocks.next++, choice },
    tool,
    rest: pieces(tool.input),
  }));
  for (const { at, tool } of open) yield { type: 'tool-start', ...at, ...toolHead(tool) };
  for (let more = true; more;) {
    more = false;
    for (const { at, rest } of open) {
      const input = rest.shift();
      if (input === undefined) continue;
      more = true;
      meter.take(1);
      yield { type: 'tool-delta', ...at, input };
    }
  }
  for (const { at } of open) yield { type: 'tool-end', ...at };
}

function toolHead({
  id,
  name,
  custom,
  proof,
}: Part & { type: 'tool' }): Omit<
  Extract<GatewayEvent, { type: 'tool-start' }>,
  'type' | 'block' | 'choice'
> {
  return { id, name, ...(custom ? { custom: true } : {}), ...(proof === undefined ? {} : { proof }) };
}

function citationOf(text: string): Citation {
  return {
    url: 'https://example.com/demo',
    title: 'The demo',
    quote: text.slice(0, 20),
    start: 0,
    end: text.length,
  };
}

/** Returns a figure between 0 and -1 that depends on the token alone. */
function logprobOf(token: string, top: number): Logprob {
  const logprob = -(createHash('sha256').update(token).digest()[0] ?? 0) / 256;
  const bytes = [...Buffer.from(token)];
  const others = Array.from({ length: top }, (_, index): Logprob => {
    const other = index === 0 ? token : `${token}${index}`;
    return { token: other, logprob: logprob - index, bytes: [...Buffer.from(other)] };
  });
  return { token, logprob, bytes, top: others };
}

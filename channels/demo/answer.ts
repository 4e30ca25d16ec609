/** Decides how the demo channel answers a chat request: reasoning, tool calls, text and media. */
import { parseObject, type FinishReason, type Reasoning, type Proof } from 'sluice';
import { fromSchema } from './from-schema.ts';
import { formOf, recalled } from './instructions.ts';
import { describeMedia, textOf, type CallableTool, type Question } from './question.ts';
import { callContent, type Seals } from './seals.ts';
import { requestedFinish } from './switches.ts';
import { pieces } from './words.ts';

/** Part of an answer. */
export type Part =
  | { readonly type: 'reasoning'; readonly text: string; readonly hidden: boolean; readonly proof?: Proof }
  | {
      readonly type: 'text';
      readonly pieces: Iterable<string>;
      readonly cite: boolean;
      readonly seal?: (text: string) => Proof;
    }
  | { readonly type: 'refusal'; readonly text: string }
  | {
      readonly type: 'tool';
      readonly id: string;
      readonly name: string;
      readonly input: string;
      readonly custom: boolean;
      readonly proof?: Proof;
    }
  | {
      readonly type: 'media';
      readonly media: 'image' | 'audio';
      readonly mimeType: string;
      readonly data: string;
      readonly transcript?: string;
    };

/** Builds one of the choices for a question, before the output limit is applied. */
export interface Answer {
  readonly parts: readonly Part[];
  /** The stop sequence that cut the text. */
  readonly stopSequence?: string;
}

type ReasoningPart = Extract<Part, { type: 'reasoning' }>;

const longestEcho = 4000;
const longestThought = 200;

/** Decides what to answer. `choice`: index of the answer, from 0. */
export function answer(question: Question, seals: Seals, choice: number): Answer {
  const reasoning = reasoningPart(question, seals);
  const before: Part[] = reasoning === undefined ? [] : [reasoning];
  if (question.switches.refusal)
    return { parts: [...before, { type: 'refusal', text: 'The demo declines to answer.' }] };
  const calls = toolCalls(question);
  if (calls.length > 0) {
    const parts = calls.map((tool, index) => toolPart(question, seals, reasoning, tool, index));
    return { parts: [...before, ...parts] };
  }
  const { text, stopSequence } = stopAt(answerText(question, choice), question.request.settings.stop ?? []);
  return {
    parts: [...before, ...textParts(question, seals, text, reasoning !== undefined), ...mediaParts(question)],
    ...(stopSequence === undefined ? {} : { stopSequence }),
  };
}

function reasoningPart(
  { reasoning, text, wire, switches }: Question,
  seals: Seals,
): ReasoningPart | undefined {
  if (reasoning === undefined) return undefined;
  const thought = `The user wrote: ${clip(text, longestThought)}\nI think ${describeReasoning(reasoning)}.`;
  const hidden = reasoning.show === false || reasoning.display === 'omitted';
  const part: ReasoningPart = { type: 'reasoning', text: thought, hidden };
  if (wire.format === 'responses') return { ...part, proof: seals.hide('responses', thought) };
  const { format } = wire;
  if (format !== 'messages' && format !== 'converse') return part;
  if (switches.redacted) return { ...part, hidden: true, proof: seals.hide(format, thought) };
  return { ...part, proof: seals.sign(format, 'reasoning', visible(part)) };
}

/** Describes the requested reasoning as it arrived, so that tests can see how the gateway translated it. */
function describeReasoning({ effort, budget, mode }: Reasoning): string {
  const words = Object.entries({ effort, budget, mode }).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name} ${value}`],
  );
  return words.length === 0 ? 'as I always do' : `with ${words.join(', ')}`;
}

function toolPart(
  question: Question,
  seals: Seals,
  reasoning: ReasoningPart | undefined,
  tool: CallableTool,
  index: number,
): Part {
  const { wire, text, request } = question;
  const input =
    tool.type === 'custom' ? `demo ${tool.name}` : JSON.stringify(fromSchema(tool.schema, tool.name));
  const call = { name: tool.name, input };
  const sealed = wire.format === 'generate-content' && reasoning !== undefined && index === 0;
  return {
    type: 'tool',
    id: seals.callId(
      wire.format === 'messages' ? 'toolu_' : 'call_',
      `${request.messages.length}\n${index}\n${tool.name}\n${text}`,
      reasoning === undefined ? undefined : visible(reasoning),
    ),
    ...call,
    custom: tool.type === 'custom',
    ...(sealed ? { proof: seals.sign('generate-content', 'tool-call', callContent(call)) } : {}),
  };
}

function visible({ text, hidden }: ReasoningPart): string {
  return hidden ? '' : text;
}

/** Returns the beginning of a text, whole characters only: half of one would not survive the wire. */
function clip(text: string, length: number): string {
  return text.slice(0, length).toWellFormed();
}

/**
 * Returns the tools to call now: those that the text names, one step at a time ("call a and b then c"), or the one that must be called, or the one
 * that the text asks for.
 */
function toolCalls({ request, tools, text, results, round }: Question): readonly CallableTool[] {
  const choice = request.toolChoice ?? { type: 'auto' };
  if (choice.type === 'none') return [];
  const allowed = tools.filter(({ name }) => {
    if (choice.type === 'tool') return name === choice.name;
    return choice.type !== 'allowed' || choice.names.includes(name);
  });
  const step = stepsOf(text, allowed, request.settings.parallelTools !== false)[round] ?? [];
  if (step.length > 0 || results.length > 0) return step;
  const forced = choice.type === 'allowed' ? choice.mode === 'required' : choice.type !== 'auto';
  if (forced) return allowed.slice(0, 1);
  return round > 0 ? [] : allowed.filter((tool) => asksFor(text, tool)).slice(0, 1);
}

/** Returns true for a question with the subject of a tool in it: "What is the weather like?" where there is a `get_weather`. */
function asksFor(text: string, { name }: CallableTool): boolean {
  const subject = /[_-]([a-z]{4,})$/.exec(name)?.[1];
  if (subject === undefined || !text.includes('?')) return false;
  return text
    .toLowerCase()
    .split(/[^a-z]+/)
    .includes(subject);
}

function stepsOf(
  text: string,
  tools: readonly CallableTool[],
  parallel: boolean,
): readonly (readonly CallableTool[])[] {
  const from = text.search(/\bcall\b/i);
  if (from < 0) return [];
  if (/^call (?:both|all)(?: of)?(?: the)? tools\b/i.test(text.slice(from)))
    return parallel ? [tools] : tools.map((tool) => [tool]);
  const steps = text
    .slice(from)
    .split(/\bthen\b/i)
    .map((words) => words.match(/[\w.:-]+/g) ?? [])
    .map((words) => words.flatMap((word) => tools.filter(({ name }) => name === word.replace(/[.:]+$/, ''))))
    .filter((step) => step.length > 0);
  return parallel ? steps : steps.flat().map((tool) => [tool]);
}

/** Returns the text of a choice, before stop sequences are applied. */
function answerText(question: Question, choice: number): string {
  const { request, text, results, attachments, switches, wire } = question;
  const form = formOf(request);
  if (switches.request) return requestAsJson(question);
  if (form?.type === 'json-schema') return JSON.stringify(fromSchema(form.schema, form.name));
  if (form?.type === 'json') return JSON.stringify({ answer: clip(text, longestEcho), model: wire.model });
  const sentences: string[] = [];
  for (const { name, result } of results) {
    const media = result.content.flatMap((block) => ('source' in block ? [describeMedia(block)] : []));
    const content = [textOf(result.content), ...media].filter((line) => line !== '').join(', ');
    sentences.push(`${name} ${result.failed ? 'failed' : 'returned'}: ${content}`);
  }
  if (results.length === 0) {
    if (text !== '' || attachments.length === 0)
      sentences.push(recalled(request, text) ?? `You said: ${clip(text, longestEcho)}`);
    if (attachments.length > 0) {
      const count = attachments.length === 1 ? '1 attachment' : `${attachments.length} attachments`;
      sentences.push(`I received ${count}: ${attachments.map(describeMedia).join('; ')}`);
    }
  }
  return sentences.join('\n') + (choice === 0 ? '' : `\n(choice ${choice + 1})`);
}

/** Returns what reached the provider, for `!request`: tests see what the gateway made of a request. */
function requestAsJson({ wire }: Question): string {
  const { format, path, query, headers } = wire;
  return JSON.stringify({ format, path, query, headers, body: parseObject(wire.body.toString()) });
}

function stopAt(text: string, stops: readonly string[]): { text: string; stopSequence?: string } {
  let at = Infinity;
  let stopSequence: string | undefined;
  for (const stop of stops) {
    const found = stop === '' ? -1 : text.indexOf(stop);
    if (found < 0 || found >= at) continue;
    at = found;
    stopSequence = stop;
  }
  return stopSequence === undefined ? { text } : { text: text.slice(0, at), stopSequence };
}

function textParts({ switches, wire }: Question, seals: Seals, text: string, sealed: boolean): Part[] {
  const cite = switches.cite === true;
  const long = longText(switches);
  if (long !== undefined) return [{ type: 'text', pieces: long, cite }];
  if (text === '') return [];
  const seal = (whole: string): Proof => seals.sign('generate-content', 'text', whole);
  return [
    {
      type: 'text',
      pieces: pieces(text),
      cite,
      ...(sealed && wire.format === 'generate-content' ? { seal } : {}),
    },
  ];
}

/** Texts of `!chunks=N` and `!size=BYTES`, made while they are sent. */
function longText({ chunks, size }: Question['switches']): Iterable<string> | undefined {
  if (chunks !== undefined) return numbered(chunks);
  return size === undefined ? undefined : filler(size);
}

function* numbered(count: number): Generator<string> {
  for (let index = 1; index <= count; index += 1) yield index === 1 ? '1' : ` ${index}`;
}

const line = 'The demo fills this line with sixty-four bytes, end of line up.\n';
const fillerLines = 16;

function* filler(size: number): Generator<string> {
  const block = line.repeat(fillerLines);
  let left = size;
  for (; left > block.length; left -= block.length) yield block;
  if (left > 0) yield block.slice(0, left);
}

/** PNG with one red pixel. */
const png =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==';
/** A RIFF header and four samples of silence. */
const wav = 'UklGRiwAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQgAAAAAAAAAAAAAAA==';

function mediaParts({ switches, request }: Question): Part[] {
  const modalities = request.settings.modalities ?? [];
  const parts: Part[] = [];
  if (switches.image || modalities.includes('image'))
    parts.push({ type: 'media', media: 'image', mimeType: 'image/png', data: png });
  if (switches.audio || modalities.includes('audio')) {
    parts.push({ type: 'media', media: 'audio', mimeType: 'audio/wav', data: wav, transcript: 'Silence.' });
  }
  return parts;
}

/** Returns true when the requested length overrides the output limit of the request. */
export function ignoresLimit({ switches }: Question): boolean {
  return switches.size !== undefined || switches.chunks !== undefined;
}

/** Returns the reason a whole answer ends with, unless it is cut. */
export function finishOf(question: Question, { parts, stopSequence }: Answer): FinishReason {
  const requested = requestedFinish(question.switches);
  if (requested !== undefined) return requested;
  if (parts.some(({ type }) => type === 'tool')) return 'tool-calls';
  return stopSequence === undefined ? 'stop' : 'stop-sequence';
}

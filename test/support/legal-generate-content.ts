import type { WireFrame } from '../../core/sdk/format.ts';
import { isObject, type JsonObject, type JsonValue } from '../../core/model/json.ts';

const dataFields = new Set([
  'text',
  'inlineData',
  'fileData',
  'functionCall',
  'functionResponse',
  'executableCode',
  'codeExecutionResult',
  'toolCall',
  'toolResponse',
]);

/**
 * What is wrong with a generateContent stream as a client gets it; empty when nothing is. The last frame may be an error,
 * every candidate that was begun must have ended before the stream does.
 */
export function checkLegal(frames: readonly WireFrame[]): string[] {
  const wrong: string[] = [];
  const begun = new Set<number>();
  const finished = new Set<number>();
  let identity: string | undefined;
  let blocked = false;
  let failed = false;
  for (const [number, frame] of frames.entries()) {
    const report = (what: string): void => void wrong.push(`frame ${number}: ${what}`);
    if (failed) report('comes after the error');
    if (frame.event !== undefined) report('has an event name');
    if ('text' in frame) {
      report('is not JSON');
      continue;
    }
    const chunk = JSON.parse(JSON.stringify(frame.json)) as JsonObject;
    if (chunk.error !== undefined) {
      failed = true;
      checkError(chunk, report);
      continue;
    }
    const shown = `${String(chunk.modelVersion)} ${String(chunk.responseId)}`;
    if (typeof chunk.modelVersion !== 'string' || chunk.modelVersion === '') report('has no modelVersion');
    if (typeof chunk.responseId !== 'string' || chunk.responseId === '') report('has no responseId');
    if (identity !== undefined && shown !== identity) report('changes modelVersion or responseId');
    identity = shown;
    if (isObject(chunk.promptFeedback) && typeof chunk.promptFeedback.blockReason === 'string')
      blocked = true;
    if (
      chunk.candidates === undefined &&
      chunk.promptFeedback === undefined &&
      chunk.usageMetadata === undefined
    )
      report('says nothing');
    if (chunk.usageMetadata !== undefined) checkUsage(chunk.usageMetadata, report);
    checkCandidates(chunk.candidates, { begun, finished, report });
  }
  if (frames.length === 0) wrong.push('nothing was said');
  if (!failed && !blocked && begun.size === 0) wrong.push('there is no candidate');
  if (!failed)
    for (const index of begun) if (!finished.has(index)) wrong.push(`candidate ${index} never ends`);
  return wrong;
}

interface Watch {
  readonly begun: Set<number>;
  readonly finished: Set<number>;
  readonly report: (what: string) => void;
}

function checkCandidates(value: JsonValue | undefined, { begun, finished, report }: Watch): void {
  if (value === undefined) return;
  if (!Array.isArray(value) || value.length === 0) return report('has candidates that are no list');
  const here = new Set<number>();
  for (const candidate of value) {
    if (!isObject(candidate)) return report('has a candidate that is no object');
    const { index } = candidate;
    if (typeof index !== 'number' || !Number.isInteger(index) || index < 0)
      return report('has a candidate without index');
    if (here.has(index)) report(`has candidate ${index} twice`);
    here.add(index);
    if (finished.has(index)) report(`goes on with candidate ${index} after its end`);
    begun.add(index);
    const ends = candidate.finishReason !== undefined;
    if (ends && (typeof candidate.finishReason !== 'string' || candidate.finishReason === ''))
      report('ends for no reason');
    if (ends) finished.add(index);
    if (candidate.content !== undefined) checkContent(candidate.content, ends, report);
  }
}

function checkContent(content: JsonValue, ends: boolean, report: (what: string) => void): void {
  if (!isObject(content)) return report('has a content that is no object');
  if (content.role !== 'model') report('has a content that is not the model’s');
  if (content.parts === undefined) {
    if (!ends) report('has a content without parts');
    return;
  }
  if (!Array.isArray(content.parts)) return report('has parts that are no list');
  for (const part of content.parts) {
    if (isObject(part)) checkPart(part, ends, report);
    else report('has a part that is no object');
  }
}

function checkPart(part: JsonObject, ends: boolean, report: (what: string) => void): void {
  const data = Object.keys(part).filter((key) => dataFields.has(key));
  if (data.length > 1) report(`has a part of two kinds: ${data.join(', ')}`);
  if (Object.keys(part).length === 0) report('has an empty part');
  if (part.text !== undefined && typeof part.text !== 'string') report('has a text that is no string');
  if (part.text === '' && part.thoughtSignature === undefined && !ends) report('has an empty text');
  if (part.thought !== undefined && typeof part.thought !== 'boolean')
    report('has a thought that is no boolean');
  const { thoughtSignature, functionCall, inlineData } = part;
  if (thoughtSignature !== undefined && (typeof thoughtSignature !== 'string' || thoughtSignature === ''))
    report('has an empty signature');
  if (functionCall !== undefined) checkCall(functionCall, report);
  if (inlineData !== undefined) {
    const whole =
      isObject(inlineData) && typeof inlineData.mimeType === 'string' && typeof inlineData.data === 'string';
    if (!whole) report('has inlineData without type or data');
  }
}

function checkCall(call: JsonValue, report: (what: string) => void): void {
  if (!isObject(call)) return report('has a functionCall that is no object');
  const streamed =
    call.partialArgs !== undefined || call.willContinue !== undefined || Object.keys(call).length === 0;
  if (!streamed && typeof call.name !== 'string') report('has a functionCall without a name');
  if (call.args !== undefined && !isObject(call.args)) report('has a functionCall whose args are no object');
}

function checkUsage(usage: JsonValue, report: (what: string) => void): void {
  if (!isObject(usage)) return report('has usageMetadata that is no object');
  for (const [key, value] of Object.entries(usage)) {
    if (key.endsWith('TokenCount') && !(typeof value === 'number' && value >= 0))
      report(`counts ${key} as ${String(value)}`);
  }
}

function checkError(chunk: JsonObject, report: (what: string) => void): void {
  const { error } = chunk;
  if (!isObject(error)) return report('has an error that is no object');
  if (typeof error.code !== 'number' || error.code < 400 || error.code > 599)
    report('has an error without a status code');
  if (typeof error.message !== 'string' || error.message === '') report('has an error without a message');
  if (typeof error.status !== 'string' || !/^[A-Z_]+$/.test(error.status))
    report('has an error without a status word');
}

import { effortFrom, type Reasoning } from '../../model/reasoning.ts';
import { isObject, type JsonObject, type MutableObject } from '../../model/json.ts';
import type { ModelTraits } from '../../model/traits.ts';
import { given, optionalObject, optionalString } from '../_shared/check.ts';
import type { Leftovers } from '../_shared/extra.ts';
import type { ReasoningDraft } from '../_shared/reasoning.ts';
import { putAt, removeAt } from '../_shared/settings.ts';
import { askForThinking, type Room } from '../_shared/thinking/index.ts';
import { readThinking, thinkingModes } from '../_shared/thinking/read.ts';
import { historyForbidsThinking, makeRoomForThinking, type ThinkingWords } from '../_shared/thinking/room.ts';
import { settingRows } from './settings.ts';

const fieldsPlace = 'additionalModelRequestFields';
const place = `${fieldsPlace}.thinking`;
const effortPlace = 'outputConfig.effort';

/**
 * What the model's own field `thinking` and `outputConfig.effort` ask for. Models that ask in other fields are asked in theirs: those pass.
 * What is not understood goes to `left`, and what was is remembered there as it was written.
 */
export function decodeReasoning(body: JsonObject, left: Leftovers): Reasoning | undefined {
  const thinking = optionalObject(optionalObject(body[fieldsPlace], fieldsPlace)?.thinking, place);
  const effort = optionalString(optionalObject(body.outputConfig, 'outputConfig')?.effort, effortPlace);
  const reasoning: ReasoningDraft = {};
  readThinking(thinking, place, { modes: thinkingModes }, reasoning, left);
  const known = effortFrom(effort);
  if (known !== undefined) reasoning.effort = known;
  else if (given(effort)) left.put(effortPlace, effort);
  if (Object.keys(reasoning).length === 0) return undefined;
  left.put('$reasoning', {
    asked: JSON.stringify(reasoning),
    ...(thinking === undefined ? {} : { thinking }),
    ...(known === undefined ? {} : { effort }),
  });
  return reasoning;
}

/**
 * Writes a wish for reasoning in the words that the model takes: `effort` in `outputConfig`, `level` as a `reasoningConfig`, else a
 * `thinking` object. Every other field of the model's is left as it is.
 */
export function writeReasoning(
  body: MutableObject,
  reasoning: Reasoning,
  { $reasoning: written }: JsonObject,
  room: Room,
): void {
  const { traits, lose } = room;
  if (isWritten(written, reasoning)) {
    if (isObject(written.thinking)) putAt(body, place, { ...written.thinking });
    if (given(written.effort)) putAt(body, effortPlace, written.effort);
    return;
  }
  if (traits.refuses?.includes('reasoning') === true) return lose('settings.reasoning');
  if (reasoning.mode === 'between-tools') {
    lose('settings.reasoning.mode');
    if (reasoning.display !== undefined) lose('settings.reasoning.display');
    return;
  }
  const { thinking, effort, maxOutput } = askForThinking(reasoning, { ...room, traits: styled(traits) });
  const thinks = thinking !== undefined && thinking.type !== 'disabled';
  if (traits.reasoning === 'level') {
    const config = thinks
      ? { type: 'enabled', maxReasoningEffort: effort ?? 'medium' }
      : { type: 'disabled' };
    return putAt(body, `${fieldsPlace}.reasoningConfig`, config);
  }
  const byEffort = traits.reasoning === 'effort';
  if (thinking !== undefined && !byEffort) putAt(body, place, thinking);
  if (effort !== undefined) putAt(body, effortPlace, effort);
  if (byEffort) {
    if (!thinks) lose('settings.reasoning');
    return;
  }
  if (maxOutput !== undefined) putAt(body, 'inferenceConfig.maxTokens', maxOutput);
  if (!thinks) return;
  if (!historyForbidsThinking(body, thinkingWords)) makeRoomForThinking(body, thinkingWords, lose);
  else {
    removeAt(body, place);
    loseThinking(reasoning, lose);
  }
}

function loseThinking({ effort, budget, display, show }: Reasoning, lose: (path: string) => void): void {
  const measured = effort !== undefined || budget !== undefined;
  lose(measured ? 'settings.reasoning.effort' : 'settings.reasoning');
  if (display !== undefined) lose('settings.reasoning.display');
  else if (show !== undefined) lose('settings.reasoning.show');
}

const thinkingWords: ThinkingWords = {
  rows: settingRows,
  thinkingIn: ({ [fieldsPlace]: fields }) => (isObject(fields) ? fields.thinking : undefined),
  isResult: ({ toolResult }) => toolResult !== undefined,
  isCall: ({ toolUse }) => toolUse !== undefined,
  isThought: ({ reasoningContent }) => reasoningContent !== undefined,
};

/** Efforts and levels are asked for as an effort is, and spelled otherwise. */
function styled(traits: ModelTraits): ModelTraits {
  return traits.reasoning === 'effort' || traits.reasoning === 'level'
    ? { ...traits, reasoning: 'adaptive' }
    : traits;
}

/** True when the request asks for reasoning exactly as the client of this format wrote it. */
function isWritten(written: JsonObject[string], reasoning: Reasoning): written is JsonObject {
  return isObject(written) && written.asked === JSON.stringify(reasoning);
}

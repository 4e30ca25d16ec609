/** Decodes and encodes the reasoning settings of Converse. */
import { effortFrom, type Effort, type Reasoning } from '../../model/reasoning.ts';
import { isObject, type JsonObject, type MutableObject } from '../../model/json.ts';
import type { ModelTraits } from '../../model/traits.ts';
import { given, optionalObject, optionalString } from '../_shared/check.ts';
import type { Leftovers } from '../_shared/extra.ts';
import { clampEffort, effortOf, dropBudget, type ReasoningDraft } from '../_shared/reasoning.ts';
import { putAt, removeAt, valueAt } from '../_shared/settings.ts';
import { encodeThinking, type Room } from '../_shared/thinking/index.ts';
import { readThinking, thinkingModes } from '../_shared/thinking/read.ts';
import { historyForbidsThinking, makeRoomForThinking, type ThinkingWords } from '../_shared/thinking/room.ts';
import { settingRows } from './settings.ts';

const fieldsPath = 'additionalModelRequestFields';
const thinkingPath = `${fieldsPath}.thinking`;
const effortPath = 'outputConfig.effort';

/**
 * Decodes the model's field `thinking` and `outputConfig.effort`. Reasoning fields of other models pass unchanged. Unknown members go to
 * `left`, which also keeps the original spelling of known ones.
 */
export function decodeReasoning(body: JsonObject, left: Leftovers): Reasoning | undefined {
  const thinking = optionalObject(optionalObject(body[fieldsPath], fieldsPath)?.thinking, thinkingPath);
  const effort = optionalString(optionalObject(body.outputConfig, 'outputConfig')?.effort, effortPath);
  const reasoning: ReasoningDraft = {};
  readThinking(thinking, thinkingPath, { modes: thinkingModes }, reasoning, left);
  const known = effortFrom(effort);
  if (known !== undefined) reasoning.effort = known;
  else if (given(effort)) left.put(effortPath, effort);
  if (Object.keys(reasoning).length === 0) return undefined;
  left.put('$reasoning', {
    asked: JSON.stringify(reasoning),
    ...(thinking === undefined ? {} : { thinking }),
    ...(known === undefined ? {} : { effort }),
  });
  return reasoning;
}

/** Paths of the fields of models that take no `thinking` object. */
const ownPaths = {
  effort: `${fieldsPath}.reasoning_effort`,
  object: `${fieldsPath}.reasoning.effort`,
  level: `${fieldsPath}.reasoningConfig`,
} as const;

/** All paths that request reasoning. */
export const reasoningPaths: readonly string[] = [thinkingPath, effortPath, ...Object.values(ownPaths)];

/**
 * Encodes reasoning settings in the form that the model supports: a field of its own, `effort` in `outputConfig`, or a `thinking` object.
 * Other fields of the model are unchanged.
 */
export function writeReasoning(
  body: MutableObject,
  reasoning: Reasoning,
  { $reasoning: written }: JsonObject,
  room: Room,
): void {
  const { traits, drop } = room;
  if (isWritten(written, reasoning) && takesThinking(traits)) {
    if (isObject(written.thinking)) putAt(body, thinkingPath, { ...written.thinking });
    if (given(written.effort)) putAt(body, effortPath, written.effort);
    return;
  }
  if (traits.refuses?.includes('reasoning') === true) return drop('settings.reasoning');
  if (reasoning.mode === 'between-tools') {
    drop('settings.reasoning.mode');
    if (reasoning.display !== undefined) drop('settings.reasoning.display');
    return;
  }
  const { reasoning: style } = traits;
  if (style === 'effort' || style === 'object' || style === 'level')
    return writeOwnField(body, style, reasoning, room);
  const { thinking, effort, maxOutput } = encodeThinking(reasoning, room);
  if (thinking !== undefined) putAt(body, thinkingPath, thinking);
  if (effort !== undefined) putAt(body, effortPath, effort);
  if (maxOutput !== undefined) putAt(body, 'inferenceConfig.maxTokens', maxOutput);
  if (thinking === undefined || thinking.type === 'disabled') return;
  if (!historyForbidsThinking(body, thinkingWords)) makeRoomForThinking(body, thinkingWords, drop);
  else {
    removeAt(body, thinkingPath);
    dropThinking(reasoning, drop);
  }
}

/** Returns true for models with the parameter `thinking`, and for unknown models. */
function takesThinking({ reasoning }: ModelTraits): boolean {
  return reasoning === undefined || reasoning === 'adaptive' || reasoning === 'budget';
}

/** Encodes an effort in the model's own field. A model that does not reason by default needs no field to switch it off. */
function writeOwnField(
  body: MutableObject,
  style: keyof typeof ownPaths,
  wanted: Reasoning,
  room: Room,
): void {
  const { traits, drop } = room;
  const requestedEffort = effortOf(wanted);
  dropShow(wanted, drop);
  dropBudget(wanted, requestedEffort, drop);
  if (requestedEffort === undefined && wanted.mode !== 'on') {
    if (wanted.mode !== undefined) drop('settings.reasoning.mode');
    return;
  }
  if (style !== 'level') {
    const isSilent = requestedEffort === 'none' && traits.thinksByDefault !== true;
    const effort = isSilent ? undefined : clampEffort(requestedEffort ?? 'medium', traits, drop);
    if (effort !== undefined) putAt(body, ownPaths[style], effort);
    return;
  }
  const level = requestedEffort === 'none' ? undefined : levelOf(body, requestedEffort ?? 'medium', room);
  putAt(
    body,
    ownPaths.level,
    level === undefined ? { type: 'disabled' } : { type: 'enabled', maxReasoningEffort: level },
  );
}

/**
 * Returns the level beside which the request's settings are taken. `high` is refused beside an output limit, which counts more than a level, and beside
 * temperature and topP, which count less: https://docs.aws.amazon.com/nova/latest/nova2-userguide/extended-thinking.html
 */
function levelOf(body: MutableObject, effort: Effort, { traits, drop }: Room): string {
  const level = clampEffort(effort, traits, drop) ?? effort;
  if (level !== 'high') return level;
  const limit = valueAt(body, 'inferenceConfig.maxTokens');
  if (typeof limit === 'number' && limit < (traits.outputLimit ?? Infinity)) {
    drop('settings.reasoning.effort');
    return 'medium';
  }
  removeAt(body, 'inferenceConfig.maxTokens');
  for (const name of ['temperature', 'topP']) {
    if (valueAt(body, `inferenceConfig.${name}`) !== undefined) drop(`settings.${name}`);
    removeAt(body, `inferenceConfig.${name}`);
  }
  return level;
}

function dropThinking(wanted: Reasoning, drop: (path: string) => void): void {
  const measured = wanted.effort !== undefined || wanted.budget !== undefined;
  drop(measured ? 'settings.reasoning.effort' : 'settings.reasoning');
  dropShow(wanted, drop);
}

function dropShow({ display, show }: Reasoning, drop: (path: string) => void): void {
  if (display !== undefined) drop('settings.reasoning.display');
  else if (show !== undefined) drop('settings.reasoning.show');
}

const thinkingWords: ThinkingWords = {
  rows: settingRows,
  thinkingIn: ({ [fieldsPath]: fields }) => (isObject(fields) ? fields.thinking : undefined),
  isResult: ({ toolResult }) => toolResult !== undefined,
  isCall: ({ toolUse }) => toolUse !== undefined,
  isThought: ({ reasoningContent }) => reasoningContent !== undefined,
};

/** Returns true when the request for reasoning is unchanged from the client of this format. */
function isWritten(written: JsonObject[string], reasoning: Reasoning): written is JsonObject {
  return isObject(written) && written.asked === JSON.stringify(reasoning);
}

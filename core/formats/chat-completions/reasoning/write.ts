/** Encodes the request for reasoning in the dialect of the provider. */
import { budgetOfEffort, type Effort, type Reasoning } from '../../../model/reasoning.ts';
import { isObject, type JsonObject, type JsonValue, type MutableObject } from '../../../model/json.ts';
import type { ModelTraits } from '../../../model/traits.ts';
import { takesOff, thinksAbout } from '../../../model/thinks.ts';
import { clampEffort, effortOf, dropBudget } from '../../_shared/reasoning.ts';
import { sameJson } from '../../../json/same-json.ts';
import { moved } from '../../_shared/settings.ts';
import { readReasoning } from './index.ts';

type Dialect = 'effort' | 'thinking' | 'object' | 'enable-thinking' | 'template' | 'none';
type Drop = (path: string) => void;

/** Returns the form of reasoning requests for this model. */
function dialectOf({ reasoning }: ModelTraits): Dialect {
  switch (reasoning) {
    case 'thinking':
    case 'object':
    case 'enable-thinking':
    case 'template':
    case 'none':
      return reasoning;
    default:
      return 'effort';
  }
}

/** Returns the fields for reasoning of a model with these traits. Template arguments of an unknown model are left to the client. */
function membersOf(traits: ModelTraits): readonly string[] {
  switch (dialectOf(traits)) {
    case 'effort':
      return ['reasoning_effort'];
    case 'thinking':
      return hasMeasure(traits) ? ['thinking', 'reasoning_effort'] : ['thinking'];
    case 'object':
      return ['reasoning'];
    case 'enable-thinking':
      return ['enable_thinking', 'thinking_budget'];
    case 'template':
    case 'none':
      return [traits.templateMember ?? 'chat_template_kwargs'];
  }
}

/** Returns true when the dialect has an effort beside a switch. */
function hasMeasure({ efforts }: ModelTraits): boolean {
  return efforts?.some((effort) => effort !== 'none') === true;
}

/** Returns the client's own fields if they still match the settings and the model supports them; otherwise undefined. */
export function spelledReasoning(
  spelled: JsonValue | undefined,
  wanted: Reasoning | undefined,
  traits: ModelTraits,
): JsonObject | undefined {
  if (!isObject(spelled) || !sameJson(asJson(readReasoning(spelled)), asJson(wanted))) return undefined;
  if (wanted?.effort !== undefined && traits.efforts?.includes(wanted.effort) === false) return undefined;
  if (traits.reasoning === undefined) return spelled;
  const allowed = membersOf(traits);
  if (!Object.keys(spelled).every((member) => allowed.includes(member))) return undefined;
  return wanted === undefined || isTaken(spelled, wanted, traits) ? spelled : undefined;
}

/** Returns true when the model supports the request for reasoning in the members of its dialect. */
function isTaken(spelled: JsonObject, wanted: Reasoning, traits: ModelTraits): boolean {
  const { budget } = wanted;
  const dialect = dialectOf(traits);
  if (dialect === 'none') return true;
  if (effortOf(wanted) === 'none' && !takesOff(traits)) return false;
  if (budget !== undefined && dialect !== 'effort') {
    const range = traits.thinkingBudget;
    if (range === undefined ? dialect !== 'object' : moved(budget, range) !== budget) return false;
  }
  // An effort alone does not switch thinking on, nor off.
  if (dialect === 'thinking')
    return spelled.thinking !== undefined || (traits.thinksByDefault === true && wanted.effort !== 'none');
  if (dialect === 'template') return switchesOf(spelled).every((name) => name === switchOf(traits));
  return true;
}

function switchesOf({ chat_template_kwargs: kwargs }: JsonObject): readonly string[] {
  return isObject(kwargs) ? Object.keys(kwargs) : [];
}

function switchOf({ templateSwitch = 'enable_thinking' }: ModelTraits): string {
  return templateSwitch;
}

function asJson(reasoning: Reasoning | undefined): JsonValue {
  return reasoning === undefined ? null : { ...reasoning };
}

/** Encodes the reasoning settings in the form of the model's traits. Reports settings that this form cannot express. */
export function writeReasoning(
  wanted: Reasoning,
  traits: ModelTraits,
  body: MutableObject,
  drop: Drop,
): void {
  const dialect = dialectOf(traits);
  switch (dialect) {
    case 'none':
      // A model that does not reason by default needs no switch.
      if (effortOf(wanted) !== 'none' || thinksAbout(wanted, traits)) drop('settings.reasoning');
      return;
    case 'object':
      return writeObject(wanted, traits, body, drop);
    case 'effort':
      return writeEffort(wanted, traits, body, drop);
    default:
      return writeSwitch(dialect, wanted, traits, body, drop);
  }
}

function writeEffort(wanted: Reasoning, traits: ModelTraits, body: MutableObject, drop: Drop): void {
  const effort = effortOf(wanted);
  dropDisplay(wanted, drop);
  dropBudget(wanted, effort, drop);
  // The model always reasons, and takes no effort or budget.
  if (
    effort !== 'none' &&
    traits.thinksByDefault === true &&
    traits.efforts !== undefined &&
    !hasMeasure(traits)
  ) {
    if (wanted.effort !== undefined) drop('settings.reasoning.effort');
  } else if (effort !== undefined) {
    const clamped = clampEffort(effort, traits, drop);
    if (clamped !== undefined) body.reasoning_effort = clamped;
  }
  // "On" with no measure: the middle one. "The model decides" is what saying nothing means.
  else if (wanted.mode === 'on') body.reasoning_effort = clampEffort('medium', traits, drop) ?? 'medium';
  else if (wanted.mode !== undefined) drop('settings.reasoning.mode');
}

/** Writes a switch, and an amount if the model has one. */
function writeSwitch(
  dialect: 'thinking' | 'enable-thinking' | 'template',
  wanted: Reasoning,
  traits: ModelTraits,
  body: MutableObject,
  drop: Drop,
): void {
  // Models with a switch show what they think.
  if (wanted.show === false || wanted.display !== undefined) dropDisplay(wanted, drop);
  const effort = effortOf(wanted);
  const off = effort === 'none';
  if (off && !takesOff(traits)) return drop('settings.reasoning.mode');
  if (wanted.mode === 'between-tools') drop('settings.reasoning.mode');
  const on = effort !== undefined || wanted.mode === 'on' || wanted.mode === 'adaptive';
  if (!on && wanted.budget === undefined) return;
  const budget = off || dialect === 'template' ? undefined : budgetFor(wanted, traits, drop);
  if (dialect === 'thinking') {
    body.thinking = {
      type: off ? 'disabled' : (traits.thinkingType ?? 'enabled'),
      ...(budget === undefined ? {} : { budget_tokens: budget }),
    };
  } else if (dialect === 'enable-thinking') {
    body.enable_thinking = !off;
    if (budget !== undefined) body.thinking_budget = budget;
  } else {
    const { templateMember = 'chat_template_kwargs' } = traits;
    const own = body[templateMember];
    body[templateMember] = {
      ...(isObject(own) ? own : {}),
      [switchOf(traits)]: !off,
    };
  }
  if (!off && budget === undefined) writeMeasure(dialect, wanted, effort, traits, body, drop);
}

/** Encodes the effort beside a switch. If there is no field for it, an effort or budget of the client is dropped. */
function writeMeasure(
  dialect: Dialect,
  wanted: Reasoning,
  effort: Effort | undefined,
  traits: ModelTraits,
  body: MutableObject,
  drop: Drop,
): void {
  if (dialect !== 'thinking' || !hasMeasure(traits)) {
    if (wanted.effort !== undefined) drop('settings.reasoning.effort');
    else if (wanted.budget !== undefined) drop('settings.reasoning.budget');
    return;
  }
  dropBudget(wanted, effort, drop);
  const clamped = effort && clampEffort(effort, traits, drop);
  if (clamped !== undefined) body.reasoning_effort = clamped;
}

/** Returns the tokens of a wish, within the range that the model states; undefined where it states none, or the wish gives no measure. */
function budgetFor(wanted: Reasoning, { thinkingBudget }: ModelTraits, drop: Drop): number | undefined {
  if (thinkingBudget === undefined) return undefined;
  const { budget, effort } = wanted;
  const tokens = budget !== undefined && budget > 0 ? budget : effort && budgetOfEffort[effort];
  if (tokens === undefined) {
    if (budget !== undefined) drop('settings.reasoning.budget');
    return undefined;
  }
  const within = moved(tokens, thinkingBudget);
  if (within !== tokens) drop(`settings.reasoning.${tokens === budget ? 'budget' : 'effort'}`);
  return within;
}

function writeObject(wanted: Reasoning, traits: ModelTraits, body: MutableObject, drop: Drop): void {
  const object: MutableObject = {};
  if (effortOf(wanted) === 'none' && traits.stopsThinking === false) drop('settings.reasoning.mode');
  else if (wanted.mode === 'off') object.enabled = false;
  else if (wanted.effort !== undefined) {
    dropBudget(wanted, wanted.effort, drop);
    object.effort = clampEffort(wanted.effort, traits, drop);
    if (object.effort === undefined) delete object.effort;
  } else if (wanted.budget !== undefined && wanted.budget >= 0) {
    object.max_tokens = moved(wanted.budget, traits.thinkingBudget);
    if (object.max_tokens !== wanted.budget) drop('settings.reasoning.budget');
  } else if (wanted.mode === 'between-tools') drop('settings.reasoning.mode');
  else if (wanted.mode !== undefined || wanted.budget !== undefined) object.enabled = true;
  if (wanted.show !== undefined) object.exclude = !wanted.show;
  if (wanted.display !== undefined) drop('settings.reasoning.display');
  if (Object.keys(object).length > 0) body.reasoning = object;
}

function dropDisplay(wanted: Reasoning, drop: Drop): void {
  if (wanted.display !== undefined) drop('settings.reasoning.display');
  else if (wanted.show !== undefined) drop('settings.reasoning.show');
}

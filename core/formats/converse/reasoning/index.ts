import { effortFrom, type Reasoning } from '../../../model/reasoning.ts';
import type { JsonObject } from '../../../model/json.ts';
import {
  given,
  optionalNumber,
  optionalObject,
  optionalString,
  requiredString,
} from '../../_shared/check.ts';
import type { MutableObject } from '../../_shared/settings.ts';
import { keepInner } from '../wire.ts';

type Writable = { -readonly [K in keyof Reasoning]: Reasoning[K] };

const place = 'additionalModelRequestFields.thinking';
const thinkingFields: ReadonlySet<string> = new Set(['type', 'budget_tokens', 'display']);
const modes: Readonly<Record<string, Reasoning['mode']>> = {
  enabled: 'on',
  adaptive: 'adaptive',
  disabled: 'off',
};

/**
 * What the model's own field `thinking` and `outputConfig.effort` ask for. Models that ask in other fields are asked in theirs: those pass.
 * What is not understood goes to `rest`, and what was is remembered there as it was written.
 */
export function decodeReasoning(body: JsonObject, rest: MutableObject): Reasoning | undefined {
  const fields = optionalObject(body.additionalModelRequestFields, 'additionalModelRequestFields');
  const thinking = optionalObject(fields?.thinking, place);
  const effort = optionalString(
    optionalObject(body.outputConfig, 'outputConfig')?.effort,
    'outputConfig.effort',
  );
  const reasoning: Writable = {};
  if (thinking !== undefined) readThinking(thinking, reasoning, rest);
  const known = effortFrom(effort);
  if (known !== undefined) reasoning.effort = known;
  else if (given(effort)) rest['outputConfig.effort'] = effort;
  for (const _ in reasoning) {
    rest.$reasoning = {
      asked: JSON.stringify(reasoning),
      ...(thinking === undefined ? {} : { thinking }),
      ...(known === undefined ? {} : { effort }),
    };
    return reasoning;
  }
  return undefined;
}

function readThinking(thinking: JsonObject, reasoning: Writable, rest: MutableObject): void {
  const type = requiredString(thinking.type, `${place}.type`);
  const mode = modes[type];
  const budget = optionalNumber(thinking.budget_tokens, `${place}.budget_tokens`, { integer: true });
  const display = optionalString(thinking.display, `${place}.display`);
  keepInner(rest, place, thinking, thinkingFields);
  if (mode === undefined) rest[`${place}.type`] = type;
  else reasoning.mode = mode;
  if (budget !== undefined) reasoning.budget = budget;
  if (display === undefined) return;
  reasoning.show = display !== 'omitted';
  reasoning.display = display;
}

/** Settings that OpenAI's formats have in common: their rows (path, type, range), and the encoding of `stop`, `user` and `service_tier`. */
import type { ChatSettings } from '../../model/chat.ts';
import type { JsonObject, MutableObject } from '../../model/json.ts';
import { given } from '../_shared/check.ts';
import type { Leftovers } from '../_shared/extra.ts';
import type { SettingRow } from '../_shared/settings.ts';
import type { EncodeTarget } from '../../sdk/format.ts';
import type { Scope } from './scope.ts';
import { setOf } from '../_shared/fields.ts';

/** The settings that every format of the family has, below the limit on the output. */
export const samplingRows: readonly SettingRow[] = [
  { name: 'temperature', path: 'temperature', kind: 'number', min: 0, max: 2 },
  { name: 'topP', path: 'top_p', kind: 'number', min: 0, max: 1 },
];

/** Settings of chat completions and text completions. */
export const completionRows: readonly SettingRow[] = [
  ...samplingRows,
  { name: 'stop', path: 'stop', kind: 'strings' },
  { name: 'seed', path: 'seed', kind: 'integer' },
  { name: 'frequencyPenalty', path: 'frequency_penalty', kind: 'number', min: -2, max: 2 },
  { name: 'presencePenalty', path: 'presence_penalty', kind: 'number', min: -2, max: 2 },
];

/** Settings of chat completions and Responses. */
export const chatRows: readonly SettingRow[] = [
  { name: 'topLogprobs', path: 'top_logprobs', kind: 'integer', min: 0, max: 20 },
  { name: 'parallelTools', path: 'parallel_tool_calls', kind: 'boolean' },
  // Deprecated in favour of `safety_identifier`, but the one that every provider of this family knows: so it is the one written.
  { name: 'user', path: 'user', kind: 'string' },
  { name: 'user', path: 'safety_identifier', kind: 'string' },
  { name: 'metadata', path: 'metadata', kind: 'object' },
  { name: 'serviceTier', path: 'service_tier', kind: 'string' },
  { name: 'promptCacheKey', path: 'prompt_cache_key', kind: 'string' },
];

/** Service tiers that the family has words for; another format's word is not sent. */
export const serviceTiers = setOf('auto default flex scale priority fast');

/** Most stop sequences. */
export const mostStops = 4;

/** Keeps which of the two fields, `user` or `safety_identifier`, named the user. */
export function keepUser(body: JsonObject, left: Leftovers): void {
  if (!given(body.safety_identifier)) return;
  left.put('$user', 'safety_identifier');
  if (given(body.user)) left.put('user', body.user);
}

/** Returns true when a setting that the encoder writes with its own code is present, and the model supports it. */
export function takes(name: keyof ChatSettings, settings: ChatSettings, target: EncodeTarget): boolean {
  if (settings[name] === undefined) return false;
  if (target.traits.refuses?.includes(name) !== true) return true;
  target.drop(`settings.${name}`);
  return false;
}

/** Writes the user, under the name that a client of the format used, and the service tier. `own`: what is kept of the request. */
export function writeUserAndTier(
  settings: ChatSettings,
  own: JsonObject,
  body: MutableObject,
  { target, foreign }: Scope,
  tiers: ReadonlySet<string>,
): void {
  if (takes('user', settings, target))
    body[own.$user === 'safety_identifier' ? 'safety_identifier' : 'user'] = settings.user;
  if (!takes('serviceTier', settings, target)) return;
  if (foreign && !tiers.has(settings.serviceTier ?? '')) target.drop('settings.serviceTier');
  else body.service_tier = settings.serviceTier;
}

/** Writes the stop sequences: the one string that a client of the format wrote, else a list of no more than the format takes. */
export function writeStop(
  settings: ChatSettings,
  own: JsonObject,
  body: MutableObject,
  { target, foreign }: { readonly target: EncodeTarget; readonly foreign: boolean },
): void {
  const { stop } = settings;
  if (stop === undefined || !takes('stop', settings, target)) return;
  if (own.$stop === 'string' && stop.length === 1) {
    body.stop = stop[0];
    return;
  }
  if (foreign && stop.length > mostStops) target.drop('settings.stop');
  if (stop.length > 0 || !foreign) body.stop = foreign ? stop.slice(0, mostStops) : stop;
}

/** Parses the switches of the demo channel, such as `!status=429`, from the text and the model name of a request. */
import { GatewayError, type FinishReason } from 'sluice';

/** All commands by the type of their value. `channels/README.md` describes each. */
const kinds = {
  // Refusals and errors
  status: 'number',
  'retry-after': 'number',
  '200-error': 'flag',
  'error-after': 'number',
  'cut-after': 'number',
  'end-after': 'number',
  garbage: 'flag',
  html: 'flag',
  // Time
  'slow-headers': 'number',
  'slow-first': 'number',
  silence: 'number',
  // Shape of the answer
  chunks: 'number',
  size: 'number',
  whole: 'flag',
  'unknown-event': 'flag',
  'no-usage': 'flag',
  interleave: 'flag',
  // Content of the response
  refusal: 'flag',
  'content-filter': 'flag',
  finish: 'word',
  redacted: 'flag',
  cite: 'flag',
  image: 'flag',
  audio: 'flag',
  request: 'flag',
} as const;

type Name = keyof typeof kinds;
type ValueOf = { flag: true; number: number; word: string };

/** Switches of one request. */
export type Switches = { readonly [N in Name]?: ValueOf[(typeof kinds)[N]] };

/**
 * Reads `!status=429 retry-after=2`: words that begin with `!`, and the `name=value` words right behind one. Words that are no switch are
 * ordinary text. The text has precedence over the name of the model (`demo!status=429`). Throws 400 for an invalid number.
 */
export function readSwitches(model: string, text: string): Switches {
  const found: Record<string, true | number | string> = {};
  for (const word of model.split('!').slice(1)) put(found, word);
  let behind = false;
  for (const word of text.split(/\s+/)) {
    if (word.startsWith('!')) behind = put(found, word.slice(1));
    else if (behind) behind = word.includes('=') && put(found, word);
  }
  return found;
}

function put(found: Record<string, true | number | string>, word: string): boolean {
  const equals = word.indexOf('=');
  const name = equals < 0 ? word : word.slice(0, equals);
  if (!isName(name)) return false;
  found[name] = valueOf(name, equals < 0 ? '' : word.slice(equals + 1));
  return true;
}

function isName(word: string): word is Name {
  return Object.hasOwn(kinds, word);
}

const units: Readonly<Record<string, number>> = { k: 1024, m: 1024 * 1024 };

function valueOf(name: Name, value: string): true | number | string {
  if (kinds[name] === 'flag') return true;
  if (kinds[name] === 'word') return value;
  const [, digits, unit] = /^(\d+)([km]?)$/i.exec(value) ?? [];
  if (digits === undefined) {
    throw new GatewayError('invalid_value', `The demo's !${name} needs a number: !${name}=3.`);
  }
  return Number(digits) * (units[unit?.toLowerCase() ?? ''] ?? 1);
}

const reasons: readonly FinishReason[] = [
  'stop',
  'length',
  'context-window',
  'content-filter',
  'refusal',
  'pause',
  'compaction',
  'malformed',
  'other',
];

/** Returns the finish reason of `!finish=…`, `!refusal` or `!content-filter`; undefined without one of them. */
export function requestedFinish(switches: Switches): FinishReason | undefined {
  if (switches.refusal) return 'refusal';
  if (switches['content-filter']) return 'content-filter';
  return reasons.find((reason) => reason === switches.finish);
}

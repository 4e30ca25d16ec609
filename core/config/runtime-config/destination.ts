/** Keeps the stored secrets of a changed entry only while they go where they went before. */
import type { z } from 'zod';
import { isObject, type JsonValue } from '../../model/json.ts';
import type { EntryKind } from '../../state/runtime-config/index.ts';
import { isSameValue } from './changes.ts';
import { channelValueOf } from './definitions.ts';
import { noSecret, sentElsewhere } from './refusals.ts';
import { keepSecrets, secretsOf } from './secret-values.ts';

/** Options of channels that do not decide where a secret is sent. All others may: those of a kind can be parts of its address. */
const freeOptions: ReadonlySet<string> = new Set([
  'body',
  'discover',
  'headers',
  'key',
  'keys',
  'learn',
  'mayRead',
  'mayWrite',
  'models',
  'priority',
  'routingFields',
  'systemPrompt',
  'timeouts',
  'traits',
  'weight',
]);

/**
 * Returns a changed value with the stored secrets in the places where it has hidden ones. Throws 400 where there is no such secret, or where it
 * would be sent elsewhere than before, because whoever makes the change need not know it.
 */
export function keepStored(
  kind: EntryKind,
  schema: z.ZodType,
  value: JsonValue,
  stored: JsonValue | undefined,
): JsonValue {
  const paths: string[] = [];
  const old = stored === undefined ? new Map<string, string>() : secretsOf(schema, stored);
  const kept = keepSecrets(value, old, noSecret, (path) => void paths.push(path));
  for (const path of paths) {
    const [now, before] = [kept, stored ?? null].map((one) => destinationOf(kind, one, path));
    if (!isSameValue(now, before)) throw sentElsewhere(path);
  }
  return kept;
}

/** Returns the parts of a value that may decide where the secret at a path is sent. */
function destinationOf(kind: EntryKind, value: JsonValue, path: string): JsonValue {
  const channel = kind === 'channel' ? channelValueOf(value) : undefined;
  if (channel === undefined) {
    const element = Array.isArray(value) ? (value as readonly JsonValue[])[Number.parseInt(path, 10)] : value;
    return addressesIn(element ?? null);
  }
  const options = Object.entries(channel.options).filter(([name]) => !freeOptions.has(name));
  return [channel.type, options.toSorted(([one], [other]) => (one < other ? -1 : 1))] as JsonValue;
}

/** Returns all addresses of a value, and what stands for one. */
function addressesIn(value: JsonValue): string[] {
  if (typeof value === 'string') return URL.canParse(value) ? [value] : [];
  if (Array.isArray(value)) return (value as readonly JsonValue[]).flatMap(addressesIn);
  if (!isObject(value)) return [];
  return Object.values(value).flatMap((one) => (one === undefined ? [] : addressesIn(one)));
}

import { isObject, parseObject, type JsonObject, type JsonValue } from '../../model/json.ts';

/** Where text stands that a model wrote as arguments though it is no JSON object. */
const rawKey = '_raw';

/** Arguments are an object here: free text is wrapped, and so is text that is no JSON object. */
export function readArguments({
  input,
  custom,
}: {
  readonly input: string;
  readonly custom?: boolean;
}): JsonObject {
  if (custom === true) return { input };
  if (input.trim() === '') return {};
  return parseObject(input) ?? { [rawKey]: input };
}

/** The text that {@link readArguments} wrapped because it was no JSON object; undefined for ordinary arguments. */
export function rawArguments(args: JsonValue): string | undefined {
  if (!isObject(args)) return undefined;
  const raw = args[rawKey];
  if (typeof raw !== 'string' || raw.trim() === '' || Object.keys(args).length !== 1) return undefined;
  return parseObject(raw) === undefined ? raw : undefined;
}

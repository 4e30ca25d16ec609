/** Parses JSON text from outside that may be nested too deeply, or no JSON at all. */
import { isObject, type JsonObject, type JsonValue } from '../model/json.ts';
import { stringEnd } from './strings.ts';

/** Maximum depth of JSON text that is parsed. The default limit for requests of clients is 128, the highest is 1000. */
const mostLevels = 1000;

/** Shorter text is parsed without a look at its depth, in characters: it takes at most two milliseconds. */
const shortText = 2048;

/**
 * Returns true for JSON text that is nested deeper than is parsed. The platform's parser takes a microsecond for each level: 16 MB of brackets, in
 * one event of a provider, blocked a worker for eight seconds (Node 24, November 2026). Strings are skipped at the speed of `indexOf`.
 */
export function nestsTooDeeply(text: string): boolean {
  if (text.length <= shortText) return false;
  let depth = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 0x22) {
      at = stringEnd(text, at);
      if (at < 0) return false;
    } else if (code === 0x7b || code === 0x5b) {
      depth += 1;
      if (depth > mostLevels) return true;
    } else if (code === 0x7d || code === 0x5d) depth -= 1;
  }
  return false;
}

/**
 * Parses JSON text from outside. Throws SyntaxError for text that is not JSON, and for text that is nested deeper than 1000 levels.
 *
 * @example
 * const value = parseJson(await readFile(path, 'utf8'));
 */
export function parseJson(text: string): JsonValue {
  if (nestsTooDeeply(text)) throw new SyntaxError(`The JSON is nested deeper than ${mostLevels} levels.`);
  return JSON.parse(text) as JsonValue;
}

/**
 * Parses text that should be a JSON object. Returns undefined when it is not JSON, not an object, or nested deeper than 1000 levels.
 *
 * @example
 * const body = parseObject(bytes.toString()) ?? {};
 */
export function parseObject(text: string): JsonObject | undefined {
  try {
    const value: unknown = parseJson(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

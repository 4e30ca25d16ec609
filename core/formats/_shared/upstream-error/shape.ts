/** Parses error bodies of any provider: JSON of many shapes, nested errors of aggregators, Server-Sent Events and plain text. */
import { parseJson } from '../../../json/parse.ts';
import { isObject, type JsonObject, type JsonValue } from '../../../model/json.ts';
import { objectsOf } from '../fields.ts';

/** Contents of an upstream's error body, independent of its shape. */
export interface ErrorShape {
  /** Error message of the upstream; empty if there is none that can be shown. */
  readonly message: string;
  /** Every machine-readable word of the body (`type`, `code`, `status`, `reason`), lower case. */
  readonly words: readonly string[];
  /** The HTTP status that the body states. */
  readonly status?: number;
  readonly param?: string;
  /** `error.details.error_code`, on which clients of the messages format act. */
  readonly errorCode?: string;
  /** Seconds, from `RetryInfo`. */
  readonly retryDelay?: number;
}

/** Longest body that is parsed: an error needs no more. */
const longestBody = 1024 * 1024;
/** Maximum depth of nested errors that are read: aggregators quote the error of their own upstream. */
const deepest = 4;

/** Recognises an error body by its structure, not by who sent it. */
export function readErrorShape(body: string): ErrorShape {
  return readText(body, 0);
}

function readText(body: string, depth: number): ErrorShape {
  const text = body.trim();
  // HTML pages are not shown to clients.
  if (text === '' || text.startsWith('<')) return { message: '', words: [] };
  const value = parse(text.startsWith('data:') || text.startsWith('event:') ? sseData(text) : text);
  if (value === undefined) return { message: text.startsWith('{') ? '' : text, words: [] };
  return readValue(value, depth);
}

function parse(text: string): JsonValue | undefined {
  if (text.length > longestBody) return undefined;
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

/** Returns the data of the first event, for upstreams that answer an error status with a stream. */
function sseData(text: string): string {
  const line = text.split('\n').find((candidate) => candidate.startsWith('data:'));
  return line === undefined ? '' : line.slice(5).trim();
}

function readValue(value: JsonValue, depth: number): ErrorShape {
  if (Array.isArray(value)) {
    const first: unknown = value.find((item) => isObject(item));
    return isObject(first)
      ? readObject(first, depth)
      : { message: value.filter(isString).join(' '), words: [] };
  }
  if (isObject(value)) return readObject(value, depth);
  return { message: isString(value) ? value : '', words: [] };
}

function readObject(body: JsonObject, depth: number): ErrorShape {
  const error = body.error;
  // One entry for each of the models that were tried in order.
  if (Array.isArray(error) && depth < deepest) return readValue(error as JsonValue, depth + 1);
  if (isString(error) && error !== '') {
    const message = isString(body.message) ? body.message : error;
    return { message, words: words([error, body.code, body.type]), ...statusIn(body.code, body.status) };
  }
  if (isObject(error)) return readEnvelope(body, error, depth);
  // `response.failed` of the responses format holds the error one level down.
  if (isObject(body.response) && isObject(body.response.error)) return readObject(body.response, depth);
  // A flat `error` event.
  if (body.type === 'error' && isString(body.message)) return readEnvelope({}, body, depth);
  return readPlain(body, depth);
}

function readEnvelope(body: JsonObject, error: JsonObject, depth: number): ErrorShape {
  const inner = quoted(error, depth);
  const details = objectsOf(error.details);
  const reasons = details.map((detail) => detail.reason);
  const code = isObject(error.innererror) ? error.innererror.code : undefined;
  const retryDelay =
    details.map((detail) => seconds(detail.retryDelay)).find((delay) => delay !== undefined) ??
    inner?.retryDelay;
  return {
    message: inner?.message || sentence(error.message) || sentence(error.detail) || '',
    words: [...words([error.type, error.code, error.status, code, ...reasons]), ...(inner?.words ?? [])],
    ...(isString(error.param) && error.param !== '' ? { param: error.param } : {}),
    ...errorCodeIn(error.details),
    ...statusIn(error.code, error.status, error.status_code, error.http_code, body.status, inner?.status),
    ...(retryDelay === undefined ? {} : { retryDelay }),
  };
}

function errorCodeIn(details: JsonValue | undefined): { readonly errorCode?: string } {
  const code = isObject(details) ? details.error_code : undefined;
  return isString(code) && /^[a-z0-9_]{1,64}$/.test(code) ? { errorCode: code } : {};
}

/** Returns the error that this one only quotes: a JSON text as message, or an aggregator's `metadata.raw`. */
function quoted(error: JsonObject, depth: number): ErrorShape | undefined {
  if (depth >= deepest) return undefined;
  const raw = isObject(error.metadata) ? error.metadata.raw : undefined;
  for (const candidate of [raw, error.message]) {
    if (!isString(candidate) || !/^\s*[{[]/.test(candidate)) continue;
    const shape = readText(candidate, depth + 1);
    if (shape.message !== '') return shape;
  }
  return undefined;
}

/** Members that hold the message and the code of bodies without `error`; `__type` is that of AWS. */
const sentences = ['message', 'msg', 'detail', 'error_msg', 'err_msg', 'Message'];
const kinds = ['code', 'type', '__type', 'name', 'status', 'error_code', 'err_code'];

/** Bodies with no `error`: `message`, `msg`, `detail`, `errors[]`, `base_resp`, `err_msg`. */
function readPlain(body: JsonObject, depth: number): ErrorShape {
  if (Array.isArray(body.errors) && body.errors.length > 0 && depth < deepest) {
    const first: JsonValue | undefined = body.errors[0];
    if (isObject(first)) return readPlain(first, depth + 1);
    if (isString(first)) return { message: first, words: words([body.name, body.code]) };
  }
  const inner = quoted(body, depth);
  const base = isObject(body.base_resp) ? body.base_resp : {};
  const candidates = [...sentences.map((name) => body[name]), base.status_msg];
  return {
    message: inner?.message ?? candidates.map(sentence).find((text) => text !== '') ?? '',
    words: words([...kinds.map((name) => body[name]), ...detailWords(body.detail)]),
    ...statusIn(body.code, body.status, body.status_code, body.error_code),
  };
}

/** Returns the words of a `detail` that is an object, or a list of them. */
function detailWords(detail: JsonValue | undefined): readonly (JsonValue | undefined)[] {
  const list: readonly JsonValue[] = Array.isArray(detail) ? detail.slice(0, 10) : [detail ?? null];
  return list.filter(isObject).flatMap(({ type, code, status }) => [type, code, status]);
}

/** Returns the text of a value that should be a sentence; validation lists (`[{loc, msg}]`) are joined. */
function sentence(value: JsonValue | undefined): string {
  if (isString(value)) return value;
  // `{"message": {"detail": [...]}}` of validators.
  if (isObject(value)) return [value.message, value.msg].find(isString) ?? listed(value.detail);
  return listed(value);
}

/** Returns the sentences of a validation list. */
function listed(value: JsonValue | undefined): string {
  if (!Array.isArray(value)) return '';
  const parts: string[] = [];
  for (const item of value.slice(0, 10) as readonly JsonValue[]) {
    if (isString(item)) parts.push(item);
    else if (isObject(item) && isString(item.msg))
      parts.push(Array.isArray(item.loc) ? `${item.loc.join('.')}: ${item.msg}` : item.msg);
  }
  return parts.join('; ');
}

function words(values: readonly (JsonValue | undefined)[]): readonly string[] {
  const found: string[] = [];
  // AWS writes `com.amazonaws.x#ThrottlingException`.
  for (const value of values)
    if (isString(value)) found.push((value.split('#').at(-1) ?? value).toLowerCase());
  return found;
}

function statusIn(...values: readonly (JsonValue | undefined)[]): { readonly status?: number } {
  for (const value of values) {
    const status = isString(value) ? Number(value) : value;
    if (typeof status === 'number' && Number.isInteger(status) && status >= 400 && status < 600)
      return { status };
  }
  return {};
}

/** Returns the seconds of `34.5s`, or of `{seconds}`. */
function seconds(value: JsonValue | undefined): number | undefined {
  if (isObject(value)) return seconds(value.seconds);
  const text = isString(value) ? value.replace(/s$/, '') : value;
  const count = text === '' || text === undefined || text === null ? Number.NaN : Number(text);
  return Number.isFinite(count) && count >= 0 ? count : undefined;
}

function isString(value: unknown): value is string {
  return typeof value === 'string';
}

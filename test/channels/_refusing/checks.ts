/** An object of JSON of which nothing is known. */
export type Json = Readonly<Record<string, unknown>>;

/** A request as the fake provider got it. */
export interface Got {
  readonly model: string;
  readonly body: Json;
  readonly stream: boolean;
}

/** The words of a text. */
export const words = (text: string): readonly string[] => text.trim().split(/\s+/);

/** Returns the member that is wrong, as the provider names it; undefined where the request is right. */
export type Check = (got: Got) => string | undefined;

export const isJson = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const objects = (list: unknown): readonly Json[] =>
  Array.isArray(list) ? list.filter((one) => isJson(one)) : [];

const given = (value: unknown): boolean => value !== undefined && value !== null;

/** The value at a path such as `generationConfig.thinkingConfig`. */
export function valueAt(body: unknown, path: string): unknown {
  let value = body;
  for (const name of path.split('.')) value = isJson(value) ? value[name] : undefined;
  return value;
}

/** The members stand there. */
export const has =
  (...paths: readonly string[]): Check =>
  ({ body }) =>
    paths.find((path) => given(valueAt(body, path)));

/** A member is missing. */
export const lacks =
  (...paths: readonly string[]): Check =>
  ({ body }) =>
    paths.find((path) => !given(valueAt(body, path)));

/** A member is there that is none of these. `within` is the object that has them; default: the body. Nulls count too. */
export const unknownIn =
  (known: readonly string[], within?: string): Check =>
  ({ body }) => {
    const object = within === undefined ? body : valueAt(body, within);
    const name = isJson(object) ? Object.keys(object).find((key) => !known.includes(key)) : undefined;
    return name === undefined || within === undefined ? name : `${within}.${name}`;
  };

/** A member has another value than one of these. */
export const otherThan =
  (path: string, allowed: readonly unknown[]): Check =>
  ({ body }) => {
    const value = valueAt(body, path);
    return given(value) && !allowed.includes(value) ? path : undefined;
  };

/** A member has one of these values. */
export const isOneOf =
  (path: string, refused: readonly unknown[]): Check =>
  ({ body }) =>
    refused.includes(valueAt(body, path)) ? path : undefined;

/** A number is outside its range. */
export const outside =
  (path: string, min: number, max: number): Check =>
  ({ body }) => {
    const value = valueAt(body, path);
    return typeof value === 'number' && (value < min || value > max) ? path : undefined;
  };

/** A role that is none of these. */
export const roleOtherThan =
  (...allowed: readonly string[]): Check =>
  ({ body }) => {
    const messages = objects(body['messages']);
    const index = messages.findIndex(({ role }) => !allowed.includes(String(role)));
    return index < 0 ? undefined : `messages[${index}].role`;
  };

/** Objects anywhere in a body, with their paths. */
function* objectsIn(value: unknown, path = ''): Generator<readonly [string, Json]> {
  if (Array.isArray(value)) {
    for (const [index, one] of value.entries()) yield* objectsIn(one, `${path}[${index}]`);
  } else if (isJson(value)) {
    yield [path, value];
    for (const [name, one] of Object.entries(value))
      yield* objectsIn(one, path === '' ? name : `${path}.${name}`);
  }
}

/** A cache mark stands anywhere in what is said and in the tools, but for those that are taken. */
export const cacheMarkOtherThan =
  (...taken: readonly string[]): Check =>
  ({ body }) => {
    for (const part of ['messages', 'system', 'tools', 'toolConfig', 'input', 'contents'])
      for (const [path, object] of objectsIn(body[part], part))
        for (const name of ['cache_control', 'prompt_cache_breakpoint', 'cachePoint'])
          if (given(object[name]) && !taken.includes(name)) return `${path}.${name}`;
    return undefined;
  };

/** A message of this role has a member. */
export const messageHas =
  (role: string, ...names: readonly string[]): Check =>
  ({ body }) => {
    for (const [index, message] of objects(body['messages']).entries()) {
      const name = message['role'] === role ? names.find((one) => given(message[one])) : undefined;
      if (name !== undefined) return `messages.${index}.${name}`;
    }
    return undefined;
  };

/** Tools are forced: `tool_choice` is more than `auto` and `none`. */
export const forcesTool: Check = ({ body }) => {
  const choice = body['tool_choice'];
  if (!given(choice) || choice === 'auto' || choice === 'none') return undefined;
  const type = isJson(choice) ? choice['type'] : undefined;
  return type === 'auto' || type === 'none' ? undefined : 'tool_choice';
};

/** An assistant's turn called tools and does not say what it thought. */
export const lacksReasoning: Check = ({ body }) => {
  const messages = objects(body['messages']);
  const index = messages.findIndex(
    ({ role, tool_calls: calls, reasoning_content: thought }) =>
      role === 'assistant' && objects(calls).length > 0 && (typeof thought !== 'string' || thought === ''),
  );
  return index < 0 ? undefined : `messages[${index}].reasoning_content`;
};

/** Both hold: named by the first. */
export const both =
  (first: Check, ...others: readonly Check[]): Check =>
  (got) => {
    const named = first(got);
    return named !== undefined && others.every((other) => other(got) !== undefined) ? named : undefined;
  };

/** It holds, and the other does not. */
export const unless =
  (check: Check, other: Check): Check =>
  (got) =>
    other(got) === undefined ? check(got) : undefined;

/** The call is a stream, or is none. */
export const streams: Check = ({ stream }) => (stream ? 'stream' : undefined);
export const whole: Check = ({ stream }) => (stream ? undefined : 'stream');

/** Tool calls whose ids do not look so. */
export const idOtherThan =
  (pattern: RegExp): Check =>
  ({ body }) => {
    for (const [index, message] of objects(body['messages']).entries()) {
      const ids = [...objects(message['tool_calls']).map(({ id }) => id), message['tool_call_id']];
      if (ids.some((id) => given(id) && !pattern.test(String(id)))) return `messages.${index}.tool_call_id`;
    }
    return undefined;
  };

/** A turn that is not of the other speaker than the one before it. Instructions may stand in front. */
export const doesNotAlternate: Check = ({ body }) => {
  let last: string | undefined;
  for (const [index, { role }] of objects(body['messages']).entries()) {
    const side = role === 'assistant' ? 'assistant' : role === 'system' ? 'system' : 'user';
    if (side === 'system' ? last !== undefined && last !== 'system' : side === last)
      return `messages[${index}]`;
    last = side;
  }
  return undefined;
};

/** A message of one of these roles has a list of texts for its content, where the provider takes one text. */
export const listsTexts =
  (...roles: readonly string[]): Check =>
  ({ body }) => {
    const index = objects(body['messages']).findIndex(
      ({ role, content }) =>
        roles.includes(String(role)) &&
        Array.isArray(content) &&
        content.every((part) => isJson(part) && part['type'] === 'text'),
    );
    return index < 0 ? undefined : `messages[${index}].content`;
  };

/** A tool that is no function. */
export const toolOtherThanFunction: Check = ({ body }) => {
  const index = objects(body['tools']).findIndex(({ type }) => type !== 'function');
  return index < 0 ? undefined : `tools[${index}].type`;
};

/** A tool whose name has more characters. */
export const toolNameLongerThan =
  (most: number): Check =>
  ({ body }) => {
    const index = objects(body['tools']).findIndex(
      ({ function: tool }) => isJson(tool) && String(tool['name']).length > most,
    );
    return index < 0 ? undefined : `tools[${index}].function.name`;
  };

/** A history that does not begin with instructions or the user, or does not end with the user or what a tool gave. */
export const endsAmiss: Check = ({ body }) => {
  const messages = objects(body['messages']);
  const [first, last] = [messages[0], messages.at(-1)];
  if (!['system', 'user'].includes(String(first?.['role']))) return 'messages[0].role';
  return ['user', 'tool'].includes(String(last?.['role']))
    ? undefined
    : `messages[${messages.length - 1}].role`;
};

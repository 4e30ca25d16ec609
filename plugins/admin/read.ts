/** Reads and checks the query and the body of an admin request. */
import type { IncomingMessage } from 'node:http';
import { z } from 'zod';
import { GatewayError } from 'sluice';
import { checkJsonType, parseJsonBody, readBytes } from 'sluice/internal';

const limits = { body: 1024 * 1024, depth: 16, values: 20_000, members: 2000 };

/** Returns the query of a request, checked. 400 names the parameter. */
export function readQuery(request: IncomingMessage, schema: z.ZodType): unknown {
  const { url = '' } = request;
  const mark = url.indexOf('?');
  const query: Record<string, string> = {};
  for (const [name, value] of new URLSearchParams(mark < 0 ? '' : url.slice(mark + 1))) {
    if (Object.hasOwn(query, name))
      throw new GatewayError('invalid_value', `The parameter ${name.slice(0, 100)} can be given only once.`, {
        param: name.slice(0, 100),
      });
    Object.defineProperty(query, name, { value, enumerable: true });
  }
  return checked(schema, query, 'parameter');
}

/** Returns the body of a request, checked: at most 1 MiB of JSON. An empty one counts as an empty object. */
export async function readBody(request: IncomingMessage, schema: z.ZodType): Promise<unknown> {
  const isEmpty = request.headers['content-length'] === '0' || !hasBody(request);
  if (!isEmpty) checkJsonType(request);
  const bytes = await readBytes(request, limits.body);
  return checked(schema, bytes.length === 0 ? {} : parseJsonBody(bytes, limits), 'field');
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined;
}

function checked(schema: z.ZodType, value: object, what: string): unknown {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  if (issue === undefined) throw new GatewayError('invalid_request', 'The request is invalid.');
  const param = pathOf(issue.path);
  if (issue.code === 'unrecognized_keys') {
    const [name = ''] = issue.keys;
    const path = pathOf([...issue.path, name]).slice(0, 100);
    throw new GatewayError('unsupported_parameter', `There is no ${what} ${path}.`, { param: path });
  }
  if (valueAt(value, issue.path) === undefined)
    throw new GatewayError('missing_required_parameter', `The ${what} ${param} is missing.`, { param });
  const wrongType = issue.code === 'invalid_type';
  throw new GatewayError(wrongType ? 'invalid_type' : 'invalid_value', `${param} ${issue.message}.`, {
    param,
  });
}

/** Returns a path such as `budgets[0].amount`. */
function pathOf(path: readonly PropertyKey[]): string {
  return path.reduce<string>(
    (text, step) =>
      typeof step === 'number' ? `${text}[${step}]` : text === '' ? String(step) : `${text}.${String(step)}`,
    '',
  );
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (inner, step) =>
      typeof inner === 'object' && inner !== null ? (inner as Record<PropertyKey, unknown>)[step] : undefined,
    value,
  );
}

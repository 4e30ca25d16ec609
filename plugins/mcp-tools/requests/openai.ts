/** Tools of the type `mcp` in Responses, and in chat completions where clients write them. */
import { GatewayError, type Call, type JsonObject, type JsonValue } from 'sluice';
import type { ServedTool } from '../../mcp/servers/index.ts';
import { isObject, listOf, optionalObject, optionalText, requiredText, without, wrong } from '../json.ts';
import {
  checkLabels,
  readFilter,
  readHeaders,
  readUrl,
  tokenHeader,
  type McpRequest,
  type NamesOf,
  type RequestedServer,
} from './requested.ts';

/** Reads a request of Responses. */
export function readResponses(call: Call): McpRequest {
  const { body } = call;
  const { max_tool_calls: most } = body;
  return {
    servers: serversOf(body, readApproval),
    ownTools: ownTools(body).length,
    ...(typeof most === 'number' && most >= 0 ? { maxCalls: Math.floor(most) } : {}),
    body: (functions, namesOf, isFirst) => {
      const rest = withTools(
        without(body, ['max_tool_calls']),
        functions.map(({ name, description, schema }) => ({
          type: 'function',
          name,
          description,
          parameters: schema,
          strict: false,
        })),
        responsesChoice(body['tool_choice'], namesOf, isFirst),
      );
      // The provider sees other turns than the client, so that what it keeps cannot be referred to: its reasoning comes along.
      const include = new Set([...listOf(body['include']), 'reasoning.encrypted_content']);
      return { ...rest, store: false, include: [...include] };
    },
  };
}

/** Reads a request of chat completions. */
export function readChat(call: Call): McpRequest {
  const { body } = call;
  return {
    servers: serversOf(body, noApproval),
    ownTools: ownTools(body).length,
    body: (functions, _namesOf, isFirst) =>
      withTools(
        body,
        functions.map(({ name, description, schema }) => ({
          type: 'function',
          function: { name, description, parameters: schema },
        })),
        isFirst ? body['tool_choice'] : unforced(body['tool_choice']),
      ),
  };
}

type ReadApproval = (value: JsonValue | undefined, path: string) => (tool: ServedTool) => boolean;

function serversOf(body: JsonObject, approval: ReadApproval): readonly RequestedServer[] {
  const servers = listOf(body['tools']).flatMap((tool, index) =>
    isMcp(tool) ? [serverOf(tool, `tools[${index}]`, approval)] : [],
  );
  checkLabels(servers);
  return servers;
}

function isMcp(tool: JsonValue): tool is JsonObject {
  return isObject(tool) && tool['type'] === 'mcp';
}

function serverOf(tool: JsonObject, at: string, approval: ReadApproval): RequestedServer {
  return {
    label: requiredText(tool['server_label'], `${at}.server_label`),
    url: readUrl(tool['server_url'], `${at}.server_url`),
    connector: optionalText(tool['connector_id'], `${at}.connector_id`),
    headers: {
      ...readHeaders(tool['headers'], `${at}.headers`),
      ...tokenHeader(tool['authorization'], `${at}.authorization`),
    },
    at,
    allows: readFilter(tool['allowed_tools'], `${at}.allowed_tools`) ?? (() => true),
    needsApproval: approval(tool['require_approval'], `${at}.require_approval`),
  };
}

/** Calls need approval by default. A rule that names tools decides about these; where it names only those that need it, the others do not. */
const readApproval: ReadApproval = (value, path) => {
  if (value === undefined || value === null || value === 'always') return () => true;
  if (value === 'never') return () => false;
  if (!isObject(value)) throw wrong(path, '"always", "never" or an object');
  const { always, never } = value;
  const needs = readFilter(optionalObject(always, `${path}.always`), `${path}.always`);
  const needsNot = readFilter(optionalObject(never, `${path}.never`), `${path}.never`);
  const others = needs === undefined || needsNot !== undefined;
  return (tool) => (needsNot?.(tool) === true ? false : needs?.(tool) === true || others);
};

/** Rejects options for approval, because chat completions have none. */
const noApproval: ReadApproval = (value, path) => {
  if (value !== undefined && value !== null && value !== 'never')
    throw new GatewayError(
      'unsupported_value',
      `${path} must be "never": chat completions cannot ask for approval. Use /v1/responses.`,
      { param: path },
    );
  return () => false;
};

function ownTools(body: JsonObject): readonly JsonValue[] {
  return listOf(body['tools']).filter((tool) => !isMcp(tool));
}

function withTools(
  body: JsonObject,
  functions: readonly JsonObject[],
  choice: JsonValue | undefined,
): JsonObject {
  const tools = [...ownTools(body), ...functions];
  return {
    ...without(body, ['tools', 'tool_choice']),
    ...(tools.length === 0 ? {} : { tools }),
    ...(choice === undefined || tools.length === 0 ? {} : { tool_choice: choice }),
  };
}

/** Leaves the choice to the model where it had to call a tool. */
function unforced(choice: JsonValue | undefined): JsonValue | undefined {
  if (choice === undefined || choice === 'auto' || choice === 'none') return choice;
  if (isObject(choice) && choice['type'] === 'allowed_tools') {
    const nested = choice['allowed_tools'];
    return isObject(nested)
      ? { ...choice, allowed_tools: { ...nested, mode: 'auto' } }
      : { ...choice, mode: 'auto' };
  }
  return 'auto';
}

/** Replaces tools of servers in a choice by functions. */
function responsesChoice(
  choice: JsonValue | undefined,
  namesOf: NamesOf,
  isFirst: boolean,
): JsonValue | undefined {
  const plain = replaced(choice, namesOf);
  return isFirst ? plain : unforced(plain);
}

function replaced(choice: JsonValue | undefined, namesOf: NamesOf): JsonValue | undefined {
  if (!isObject(choice)) return choice;
  const functionsOf = (tool: JsonValue): readonly JsonValue[] =>
    isMcp(tool)
      ? namesOf({
          label: requiredText(tool['server_label'], 'tool_choice.server_label'),
          name: optionalText(tool['name'], 'tool_choice.name'),
        }).map((name) => ({ type: 'function', name }))
      : [tool];
  if (choice['type'] === 'allowed_tools')
    return { ...choice, tools: listOf(choice['tools']).flatMap(functionsOf) };
  if (choice['type'] !== 'mcp') return choice;
  const tools = functionsOf(choice);
  const [only, another] = tools;
  if (only === undefined) throw wrong('tool_choice', 'a tool that the server has');
  return another === undefined ? only : { type: 'allowed_tools', mode: 'required', tools };
}

/** `mcpServers` in the tools of generateContent. */
import type { Call, JsonObject, JsonValue } from 'sluice';
import { isObject, listOf, optionalObject, requiredText, without } from '../json.ts';
import { checkLabels, readHeaders, readUrl, type McpRequest, type RequestedServer } from './requested.ts';

const spellings = ['mcpServers', 'mcp_servers'] as const;

/** Reads a request of generateContent. */
export function readGenerateContent(call: Call): McpRequest {
  const { body } = call;
  const own = listOf(body['tools']).flatMap((tool) => {
    const rest = isObject(tool) ? without(tool, spellings) : tool;
    return isObject(rest) && Object.keys(rest).length === 0 ? [] : [rest];
  });
  return {
    servers: serversOf(body),
    ownTools: own.length,
    body(functions, _namesOf, isFirst) {
      const declared = functions.map(({ name, description, schema }) => ({
        name,
        description,
        parametersJsonSchema: schema,
      }));
      const tools = [...own, ...(declared.length === 0 ? [] : [{ functionDeclarations: declared }])];
      return {
        ...without(isFirst ? body : unforced(body), ['tools']),
        ...(tools.length === 0 ? {} : { tools }),
      };
    },
  };
}

function serversOf(body: JsonObject): readonly RequestedServer[] {
  const servers = listOf(body['tools']).flatMap((tool, index) =>
    spellings.flatMap((spelling) =>
      listOf(isObject(tool) ? tool[spelling] : undefined).map((server, position) =>
        serverOf(server, `tools[${index}].${spelling}[${position}]`),
      ),
    ),
  );
  checkLabels(servers);
  return servers;
}

function serverOf(server: JsonValue, at: string): RequestedServer {
  const value = optionalObject(server, at) ?? {};
  const transport =
    optionalObject(
      value['streamableHttpTransport'] ?? value['streamable_http_transport'],
      `${at}.streamableHttpTransport`,
    ) ?? {};
  return {
    label: requiredText(value['name'], `${at}.name`),
    url: readUrl(transport['url'], `${at}.streamableHttpTransport.url`),
    headers: readHeaders(transport['headers'], `${at}.streamableHttpTransport.headers`),
    at,
    allows: () => true,
    needsApproval: () => false,
  };
}

/** Leaves the choice to the model where it had to call a function. */
function unforced(body: JsonObject): JsonObject {
  const at = ['toolConfig', 'tool_config'].find((name) => isObject(body[name]));
  const config = at === undefined ? undefined : body[at];
  if (at === undefined || !isObject(config)) return body;
  const inner = ['functionCallingConfig', 'function_calling_config'].find((name) => isObject(config[name]));
  const calling = inner === undefined ? undefined : config[inner];
  if (inner === undefined || !isObject(calling) || String(calling['mode']).toUpperCase() !== 'ANY')
    return body;
  return {
    ...body,
    [at]: {
      ...config,
      [inner]: {
        ...without(calling, ['allowedFunctionNames', 'allowed_function_names']),
        mode: 'AUTO',
      },
    },
  };
}

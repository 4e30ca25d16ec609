/** `mcp_servers` of messages, with toolsets (beta mcp-client-2025-11-20) or with the older tool_configuration (mcp-client-2025-04-04). */
import { GatewayError, type Call, type JsonObject, type JsonValue } from 'sluice';
import { isObject, listOf, optionalNames, optionalObject, requiredText, without, wrong } from '../json.ts';
import { checkLabels, readUrl, tokenHeader, type McpRequest, type RequestedServer } from './requested.ts';

/** Reads a request of messages. */
export function readMessages(call: Call): McpRequest {
  const { body } = call;
  const own = listOf(body['tools']).filter((tool) => !isToolset(tool));
  return {
    servers: serversOf(body),
    ownTools: own.length,
    body(functions, _namesOf, isFirst) {
      const tools = [
        ...own,
        ...functions.map(({ name, description, schema }) => ({
          name,
          ...(description === '' ? {} : { description }),
          input_schema: schema,
        })),
      ];
      const choice = isFirst ? body['tool_choice'] : unforced(body['tool_choice']);
      return {
        ...without(body, ['mcp_servers', 'tools', 'tool_choice']),
        ...(tools.length === 0 ? {} : { tools }),
        ...(choice === undefined || tools.length === 0 ? {} : { tool_choice: choice }),
      };
    },
  };
}

interface Toolset {
  readonly value: JsonObject;
  readonly at: string;
}

function isToolset(tool: JsonValue): tool is JsonObject {
  return isObject(tool) && tool['type'] === 'mcp_toolset';
}

function serversOf(body: JsonObject): readonly RequestedServer[] {
  const toolsets = new Map<string, Toolset>();
  for (const [index, value] of listOf(body['tools']).entries()) {
    if (!isToolset(value)) continue;
    const at = `tools[${index}]`;
    const name = requiredText(value['mcp_server_name'], `${at}.mcp_server_name`);
    if (toolsets.has(name))
      throw wrong(`${at}.mcp_server_name`, 'the name of a server without another toolset');
    toolsets.set(name, { value, at });
  }
  const hasToolsets = toolsets.size > 0;
  const servers = listOf(body['mcp_servers']).map((server, index) => {
    const at = `mcp_servers[${index}]`;
    const value = optionalObject(server, at) ?? {};
    const label = requiredText(value['name'], `${at}.name`);
    const toolset = toolsets.get(label);
    toolsets.delete(label);
    if (hasToolsets && toolset === undefined)
      throw new GatewayError('invalid_value', `${at}: no mcp_toolset in tools names the server "${label}".`, {
        param: at,
      });
    return serverOf(value, label, at, toolset);
  });
  // A toolset alone names a server that the operator has configured.
  const named = [...toolsets].map(([label, toolset]) => serverOf({}, label, toolset.at, toolset));
  const all = [...servers, ...named];
  checkLabels(all);
  return all;
}

function serverOf(
  value: JsonObject,
  label: string,
  at: string,
  toolset: Toolset | undefined,
): RequestedServer {
  return {
    label,
    url: readUrl(value['url'], `${at}.url`),
    headers: tokenHeader(value['authorization_token'], `${at}.authorization_token`),
    at,
    allows:
      toolset === undefined
        ? configured(value['tool_configuration'], `${at}.tool_configuration`)
        : enabled(toolset),
    needsApproval: () => false,
  };
}

function configured(value: JsonValue | undefined, at: string): RequestedServer['allows'] {
  const configuration = optionalObject(value, at) ?? {};
  if (configuration['enabled'] === false) return () => false;
  const names = optionalNames(configuration['allowed_tools'], `${at}.allowed_tools`);
  return ({ name }) => names === undefined || names.has(name);
}

function enabled({ value, at }: Toolset): RequestedServer['allows'] {
  const byDefault = optionalObject(value['default_config'], `${at}.default_config`)?.['enabled'] !== false;
  const configs = optionalObject(value['configs'], `${at}.configs`) ?? {};
  return ({ name }) => {
    const config = Object.hasOwn(configs, name) ? configs[name] : undefined;
    const own = isObject(config) ? config['enabled'] : undefined;
    return typeof own === 'boolean' ? own : byDefault;
  };
}

/** Leaves the choice to the model where it had to call a tool. */
function unforced(choice: JsonValue | undefined): JsonValue | undefined {
  if (!isObject(choice) || (choice['type'] !== 'any' && choice['type'] !== 'tool')) return choice;
  return { ...without(choice, ['name']), type: 'auto' };
}

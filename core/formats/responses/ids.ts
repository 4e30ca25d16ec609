/** The kinds of things in a reply that have ids, and how their ids begin. */
const prefixes = {
  message: 'msg',
  reasoning: 'rs',
  function_call: 'fc',
  custom_tool_call: 'ctc',
  local_shell_call: 'lsh',
  shell_call: 'sh',
  apply_patch_call: 'apc',
  image_generation_call: 'ig',
  web_search_call: 'ws',
  file_search_call: 'fs',
  code_interpreter_call: 'ci',
  mcp_call: 'mcp',
  mcp_list_tools: 'mcpl',
  compaction: 'cmp',
} as const;

/** Returns the id of a reply: the provider's own where it has this format's style, else one made of the request's id, always the same. */
export function responseId(headId: string, requestId: string): string {
  if (/^resp_./.test(headId)) return headId;
  return `resp_${plain(requestId.replace(/^req_/, ''))}`;
}

/** Returns the id of the item at `index` of a reply's output, for items that came without one: the same for the same reply and place. `type` is the item's type. */
export function itemId(type: string, response: string, index: number): string {
  const prefix = Object.hasOwn(prefixes, type) ? prefixes[type as keyof typeof prefixes] : 'item';
  return `${prefix}_${plain(response.replace(/^resp_/, ''))}_${index}`;
}

/** Returns the id of a call whose provider gave none. */
export function callId(response: string, index: number): string {
  return `call_${plain(response.replace(/^resp_/, ''))}_${index}`;
}

function plain(text: string): string {
  const bare = text.replaceAll(/[^A-Za-z0-9]/g, '').slice(0, 64);
  return bare === '' ? '0' : bare;
}

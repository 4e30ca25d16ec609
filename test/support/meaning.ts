import type { Block, ChatRequest, Message, Tool } from '../../core/model/chat.ts';
import { effortOfBudget, type Reasoning } from '../../core/model/reasoning.ts';
import { spellToolId } from '../../core/formats/_shared/tool-ids.ts';

/** One field of a request: its path and value. `core` is the value itself, `details` are its attributes. */
interface Statement {
  readonly at: string;
  readonly core: string;
  readonly details: ReadonlyMap<string, string>;
}

/**
 * What differs between two requests in meaning, as the paths that losses are reported by. How something is spelled does not count:
 * merged turns, the order of tool results, ids, roles of instructions, effort against budget.
 */
export function differences(one: ChatRequest, other: ChatRequest): string[] {
  const paths = new Set<string>();
  compare(statements(one), statements(other), paths);
  const others = settings(other);
  for (const [name, value] of settings(one)) {
    const same =
      name === 'reasoning.display' || name === 'reasoning.show' ? visible(others, other) : others.get(name);
    if (same !== value) paths.add(`settings.${name}`);
  }
  if (one.tools.length > 0 && choice(one) !== choice(other)) paths.add('tool_choice');
  return [...paths];
}

/** In Responses nothing is shown that was not asked for. */
function visible(found: ReadonlyMap<string, string>, { format }: ChatRequest): string | undefined {
  return (
    found.get('reasoning.display') ??
    found.get('reasoning.show') ??
    (format === 'responses' ? 'false' : undefined)
  );
}

/** The forced tool call of a request. */
function choice({ toolChoice = { type: 'auto' } }: ChatRequest): string {
  if (toolChoice.type === 'tool') return `required ${toolChoice.name}`;
  if (toolChoice.type !== 'allowed') return toolChoice.type;
  const names = [...toolChoice.names].toSorted();
  return `${names.length === 1 ? '' : 'allowed '}${toolChoice.mode} ${names.join()}`;
}

function compare(ones: readonly Statement[], others: readonly Statement[], paths: Set<string>): void {
  const left = [...others];
  const take = (fits: (other: Statement) => boolean): Statement | undefined => {
    const index = left.findIndex(fits);
    return index < 0 ? undefined : left.splice(index, 1)[0];
  };
  const differing: Statement[] = [];
  for (const statement of ones) {
    if (take((other) => isSame(statement, other)) === undefined || statement.core === 'fields')
      differing.push(statement);
  }
  for (const statement of differing) {
    const found = take(({ core }) => core === statement.core);
    if (statement.core === 'fields') {
      for (const name of statement.details.keys())
        paths.add(statement.at === '' ? name : `${statement.at}.${name}`);
      continue;
    }
    if (found === undefined) paths.add(statement.at);
    for (const [name, value] of statement.details) {
      if (found !== undefined && found.details.get(name) !== value)
        paths.add(statement.at === '' ? name : `${statement.at}.${name}`);
    }
  }
  for (const { core } of left) {
    const standsIn =
      standIns.some((known) => known.test(core)) || isEmptyResult(core, left) || isNamedInCall(core, ones);
    if (core !== 'fields' && !standsIn) paths.add(`+${core.slice(0, 80)}`);
  }
}

/** Texts that stand in for what a format has no field for: JSON mode as an instruction, images beside a result, results that never came. */
const standIns = [
  /^system text Answer with one valid JSON object/,
  /^result of .* text \[(?:image|file): see the next user message\]$/,
  /^user text Output of /,
  /^result of .* text \(no (output|result)\)$/,
  /^user text \.$/,
];

function isSame(one: Statement, other: Statement): boolean {
  return (
    one.core === other.core && [...one.details].every(([name, value]) => other.details.get(name) === value)
  );
}

/** A result that a format supplies for a call that has none. */
function isEmptyResult(core: string, list: readonly Statement[]): boolean {
  const id = /^result (\S+)$/.exec(core)?.[1];
  return (
    id !== undefined &&
    list.some((other) => /^\(no (output|result)\)$/.test(other.core.split(`of ${id} text `)[1] ?? ''))
  );
}

/** A tool that a format supplies for the calls of a history that comes without tools. */
function isNamedInCall(core: string, ones: readonly Statement[]): boolean {
  const name = /^tool function (.*)$/.exec(core)?.[1];
  return (
    name !== undefined &&
    !ones.some((one) => one.core.startsWith('tool ')) &&
    ones.some((one) => one.core.startsWith('call ') && one.core.split(' ')[2] === name)
  );
}

function statements(request: ChatRequest): Statement[] {
  const list: Statement[] = [{ at: '', core: 'fields', details: extras(request) }];
  for (const message of request.system) list.push(...ofMessage(message, 'system'));
  for (const message of request.messages)
    list.push(
      ...ofMessage(
        message,
        message.role === 'tool' ? 'user' : message.role === 'system' ? 'middle' : message.role,
      ),
    );
  for (const tool of request.tools) list.push(ofTool(tool));
  return list;
}

function ofMessage(message: Message, role: string): Statement[] {
  const turned = message.content.flatMap((block) =>
    block.type === 'text' ? (middle(role, block.text) ?? []) : [],
  );
  const own = new Map(extras(message));
  const list = message.content.flatMap((block) => ofBlock(block, role));
  for (const text of turned) {
    list.push({ at: message.at ?? '', core: `turn ${text}`, details: new Map([['role', message.role]]) });
  }
  if (own.size > 0) list.push({ at: message.at ?? '', core: 'fields', details: own });
  return list;
}

function ofBlock(block: Block, role: string): Statement[] {
  const at = block.at ?? '';
  const details = new Map(extras(block));
  if (block.cache !== undefined) cached(details, block.cache);
  switch (block.type) {
    case 'text':
      if (block.citations !== undefined) details.set('citations', JSON.stringify(block.citations.length));
      if (block.proof !== undefined) details.set('proof', block.proof.value);
      if (block.text === '' && details.size === 0) return [];
      return [
        {
          at,
          core: `${middle(role, block.text) === undefined ? role : 'middle'} text ${middle(role, block.text) ?? block.text}`,
          details,
        },
      ];
    case 'refusal':
      return [{ at, core: `${role} text ${block.text}`, details: details.set('refusal', 'yes') }];
    case 'reasoning':
      if (block.proof !== undefined) details.set('proof', block.proof.value);
      return [{ at, core: `${role} reasoning ${block.text}`, details }];
    case 'tool-call':
      if (block.proof !== undefined) details.set('proof', block.proof.value);
      return [
        {
          at,
          core: `call ${spellToolId(block.id)} ${block.name} ${block.custom ? JSON.stringify({ input: block.input }) : canonical(block.input)}`,
          details,
        },
      ];
    case 'tool-result': {
      if (block.failed === true) details.set('failed', 'true');
      const name = `result of ${spellToolId(block.id)}`;
      const texts = block.content.flatMap((part) => (part.type === 'text' ? [part.text] : []));
      const others = block.content
        .filter((part) => part.type !== 'text')
        .flatMap((part) => ofBlock(part, name));
      const marks = new Map(
        block.content.flatMap((part) =>
          part.type === 'text' ? [...(ofBlock(part, name)[0]?.details ?? [])] : [],
        ),
      );
      const text = texts
        .join('\n')
        .replace(/^Error: /, '')
        .replace(/\n?\[(?:image|file): see the next user message\]$/, '');
      const content =
        text === '' ? [] : [{ at: block.content[0]?.at ?? at, core: `${name} text ${text}`, details: marks }];
      return [{ at, core: `result ${spellToolId(block.id)}`, details }, ...content, ...others];
    }
    case 'opaque':
      return [{ at, core: `${role} opaque ${block.format} ${JSON.stringify(block.value)}`, details }];
    default:
      if (block.detail !== undefined) details.set('detail', block.detail);
      if (block.name !== undefined) details.set('name', block.name);
      return [
        {
          at,
          core: `${block.type} ${JSON.stringify(block.source.kind === 'url' ? block.source.url : block.source)}`,
          details,
        },
      ];
  }
}

function ofTool(tool: Tool): Statement {
  const details = new Map(extras(tool));
  if (tool.cache !== undefined) cached(details, tool.cache);
  if (tool.type === 'custom' && tool.format !== undefined && tool.format.type !== 'text')
    details.set('format', JSON.stringify(tool.format));
  if (tool.type === 'function') {
    if (tool.description !== undefined) details.set('description', tool.description);
    if (
      tool.schema !== undefined &&
      Object.keys((tool.schema.properties as object | undefined) ?? {}).length > 0
    )
      details.set('schema', JSON.stringify(tool.schema));
    if (tool.strict !== undefined) details.set('strict', String(tool.strict));
  }
  return {
    at: tool.at ?? '',
    core: `tool ${tool.type === 'custom' ? 'function' : tool.type} ${tool.type === 'web-search' || tool.type === 'code-execution' ? '' : tool.name}`,
    details,
  };
}

function cached(details: Map<string, string>, cache: { readonly ttl?: string }): void {
  details.set('cache', 'yes');
  if (cache.ttl !== undefined) details.set('cache.ttl', cache.ttl);
}

/** A system message in the middle may stand in a user's turn, marked as such. */
function middle(role: string, text: string): string | undefined {
  const wrapped = /^<system>([^]*)<\/system>$/.exec(text)?.[1];
  if (role === 'user' && wrapped !== undefined) return wrapped;
  return role === 'middle' ? text : undefined;
}

function extras(piece: { readonly extra?: ChatRequest['extra'] }): Map<string, string> {
  const found = new Map<string, string>();
  for (const fields of Object.values(piece.extra ?? {})) {
    for (const [name, value] of Object.entries(fields))
      if (!name.startsWith('$')) found.set(name, JSON.stringify(value));
  }
  return found;
}

function settings(request: ChatRequest): Map<string, string> {
  const found = new Map<string, string>();
  for (const [name, value] of Object.entries(request.settings)) {
    if (value === undefined) continue;
    if (name === 'reasoning') {
      const { mode, effort, budget, show, display } = value as Reasoning;
      const word = effort ?? (budget === undefined ? undefined : effortOfBudget(budget));
      if (word !== undefined && word !== 'none' && mode !== 'off') found.set('reasoning.effort', word);
      else if (mode === 'off') found.set('reasoning.mode', 'off');
      else if (effort === 'none' || budget === 0) found.set('reasoning.mode', 'off');
      if (budget === -1) found.set('reasoning.budget', 'dynamic');
      if (mode === 'between-tools') found.set('reasoning.mode', mode);
      if (display !== undefined)
        found.set(
          'reasoning.display',
          { omitted: 'false', summarized: 'true', auto: 'true' }[display] ?? display,
        );
      else if (show !== undefined) found.set('reasoning.show', String(show));
    } else if (name === 'responseFormat') {
      for (const [member, inner] of Object.entries(value as object))
        found.set(`responseFormat.${member}`, JSON.stringify(inner));
    } else found.set(name, JSON.stringify(value));
  }
  return found;
}

function canonical(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json === '' ? '{}' : json));
  } catch {
    return json;
  }
}

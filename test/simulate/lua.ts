/** Runs scripts of the shared store here: compiles the part of Lua that they use to JavaScript. Arrays begin at 1, as in Lua. */
import { createRequire } from 'node:module';

interface Node {
  readonly type: string;
  readonly [member: string]: unknown;
}

const { parse } = createRequire(import.meta.url)('luaparse') as {
  parse(text: string, options: object): Node;
};

/** A value of Lua. Tables are arrays whose first element is not used; other keys than numbers are members. */
export type LuaValue = undefined | boolean | number | string | LuaValue[];

/** Runs a command of the store. */
export type LuaCall = (...words: readonly LuaValue[]) => LuaValue;

/** A script, ready to run. */
export type LuaScript = (keys: readonly string[], values: readonly string[], call: LuaCall) => LuaValue;

const compiled = new Map<string, LuaScript>();

/** Compiles a script; the same one once. Throws where it uses what is not known here. */
export function compileLua(text: string): LuaScript {
  const known = compiled.get(text);
  if (known !== undefined) return known;
  const { body } = parse(text, { luaVersion: '5.1', encodingMode: 'pseudo-latin1' }) as unknown as {
    readonly body: readonly Node[];
  };
  // oxlint-disable-next-line no-implied-eval, no-new-func, typescript/no-implied-eval -- text of this repository
  const run = new Function('KEYS', 'ARGV', 'call_', 'lua', block(body)) as (
    keys: LuaValue[],
    values: LuaValue[],
    call: LuaCall,
    lua: object,
  ) => LuaValue;
  const script: LuaScript = (keys, values, call) =>
    run([undefined, ...keys], [undefined, ...values], call, library);
  compiled.set(text, script);
  return script;
}

/** Returns a number as the store receives it. */
export function luaText(value: LuaValue): string {
  return typeof value === 'number' && !Number.isInteger(value) ? value.toPrecision(17) : String(value);
}

const isTrue = (value: LuaValue): boolean => value !== undefined && value !== false;

const library = {
  isTrue,
  tonumber: (value: LuaValue) => {
    if (typeof value === 'number') return value;
    if (!isTrue(value) || value === '') return undefined;
    const number = Number(value);
    return Number.isNaN(number) ? undefined : number;
  },
  tostring: luaText,
  floor: Math.floor,
  ceil: Math.ceil,
  min: Math.min,
  max: Math.max,
  size: (value: LuaValue[] | string) => (typeof value === 'string' ? value.length : value.length - 1),
  text: luaText,
  sort: (list: LuaValue[], isBefore: (a: LuaValue, b: LuaValue) => LuaValue) => {
    const sorted = list
      .slice(1)
      .toSorted((a, b) => (isTrue(isBefore(a, b)) ? -1 : isTrue(isBefore(b, a)) ? 1 : 0));
    sorted.forEach((value, index) => (list[index + 1] = value));
  },
};

const names: Readonly<Record<string, string>> = {
  'redis.call': 'call_',
  'math.floor': 'lua.floor',
  'math.ceil': 'lua.ceil',
  'math.min': 'lua.min',
  'math.max': 'lua.max',
  'table.sort': 'lua.sort',
  tonumber: 'lua.tonumber',
  tostring: 'lua.tostring',
};

function nodes(value: unknown): readonly Node[] {
  return value as readonly Node[];
}

function block(statements: unknown): string {
  return nodes(statements).map(statement).join('\n');
}

function statement(node: Node): string {
  switch (node.type) {
    case 'LocalStatement':
      return `let ${nodes(node['variables'])
        .map((one, index) => {
          const value = nodes(node['init'])[index];
          return value === undefined ? name(one) : `${name(one)} = ${expression(value)}`;
        })
        .join(', ')};`;
    case 'AssignmentStatement': {
      const targets = nodes(node['variables']).map(expression);
      const values = nodes(node['init']).map(expression);
      return targets.length === 1
        ? `${targets[0]} = ${values[0]};`
        : `[${targets.join(', ')}] = [${values.join(', ')}];`;
    }
    case 'CallStatement':
      return `${expression(node['expression'] as Node)};`;
    case 'IfStatement':
      return nodes(node['clauses'])
        .map((clause) =>
          clause['condition'] === undefined
            ? `else { ${block(clause['body'])} }`
            : `${clause.type === 'IfClause' ? 'if' : 'else if'} (${condition(clause['condition'])}) { ${block(clause['body'])} }`,
        )
        .join(' ');
    case 'ForNumericStatement': {
      const variable = name(node['variable'] as Node);
      const step = node['step'] === null ? '1' : expression(node['step'] as Node);
      return `for (let ${variable} = ${expression(node['start'] as Node)}, end_ = ${expression(node['end'] as Node)}; ${variable} <= end_; ${variable} += ${step}) { ${block(node['body'])} }`;
    }
    case 'ForGenericStatement': {
      const [index = '', value = ''] = nodes(node['variables']).map(name);
      const [iterator] = nodes(node['iterators']);
      const [list] = nodes(iterator?.['arguments']);
      if (list === undefined || name(iterator?.['base'] as Node) !== 'ipairs') throw unknown(node);
      return `for (const [${index}, ${value}] of ${expression(list)}.entries()) { if (${index} === 0) continue; ${block(node['body'])} }`;
    }
    case 'FunctionDeclaration':
      return `const ${name(node['identifier'] as Node)} = ${expression(node)};`;
    case 'ReturnStatement':
      return `return ${nodes(node['arguments']).map(expression).join(', ')};`;
    case 'BreakStatement':
      return 'break;';
    default:
      throw unknown(node);
  }
}

function expression(node: Node): string {
  switch (node.type) {
    case 'Identifier':
      return names[name(node)] ?? name(node);
    case 'NumericLiteral':
    case 'BooleanLiteral':
    case 'StringLiteral':
      return JSON.stringify(node['value']);
    case 'NilLiteral':
      return 'undefined';
    case 'MemberExpression': {
      const member = `${name(node['base'] as Node)}.${name(node['identifier'] as Node)}`;
      const known = names[member];
      if (known === undefined) throw unknown(node);
      return known;
    }
    case 'IndexExpression':
      return `${expression(node['base'] as Node)}[${expression(node['index'] as Node)}]`;
    case 'CallExpression':
      return `${expression(node['base'] as Node)}(${nodes(node['arguments']).map(argument).join(', ')})`;
    case 'FunctionDeclaration':
      return `(${nodes(node['parameters']).map(name).join(', ')}) => { ${block(node['body'])} }`;
    case 'TableConstructorExpression':
      return table(node);
    case 'UnaryExpression': {
      const operand = expression(node['argument'] as Node);
      if (node['operator'] === '#') return `lua.size(${operand})`;
      return node['operator'] === 'not' ? `!lua.isTrue(${operand})` : `-(${operand})`;
    }
    case 'LogicalExpression': {
      const [left, right] = [expression(node['left'] as Node), expression(node['right'] as Node)];
      const isLeft = truthOf(node['left'] as Node, 'value_');
      return node['operator'] === 'and'
        ? `((value_) => ${isLeft} ? ${right} : value_)(${left})`
        : `((value_) => ${isLeft} ? value_ : ${right})(${left})`;
    }
    case 'BinaryExpression':
      return binary(
        String(node['operator']),
        expression(node['left'] as Node),
        expression(node['right'] as Node),
      );
    default:
      throw unknown(node);
  }
}

function binary(operator: string, left: string, right: string): string {
  switch (operator) {
    case '..':
      return `(lua.text(${left}) + lua.text(${right}))`;
    case '==':
      return `(${left} === ${right})`;
    case '~=':
      return `(${left} !== ${right})`;
    case '+':
      return `(+(${left}) + +(${right}))`;
    default:
      return `((${left}) ${operator} (${right}))`;
  }
}

function table(node: Node): string {
  const fields = nodes(node['fields']);
  if (fields.every(({ type }) => type === 'TableValue'))
    return `[undefined${fields.map((field) => `, ${expression(field['value'] as Node)}`).join('')}]`;
  const members = fields.map(
    (field) => `[${expression(field['key'] as Node)}]: ${expression(field['value'] as Node)}`,
  );
  return `Object.assign([undefined], { ${members.join(', ')} })`;
}

/** `unpack(list)` as the last argument. */
function argument(node: Node): string {
  const isUnpack = node.type === 'CallExpression' && name(node['base'] as Node) === 'unpack';
  const [list] = isUnpack ? nodes(node['arguments']) : [];
  return list === undefined ? expression(node) : `...${expression(list)}.slice(1)`;
}

/** Operators whose results are true or false in JavaScript too. */
const comparisons: ReadonlySet<unknown> = new Set(['<', '>', '<=', '>=', '==', '~=']);

function condition(node: unknown): string {
  return truthOf(node as Node, expression(node as Node));
}

/** JavaScript that is true where Lua takes the value for true. */
function truthOf({ type, operator }: Node, value: string): string {
  const isBoolean = comparisons.has(operator) || (type === 'UnaryExpression' && operator === 'not');
  return isBoolean ? value : `lua.isTrue(${value})`;
}

function name(node: Node): string {
  return String(node['name']);
}

function unknown({ type }: Node): Error {
  return new Error(`${type} is not known here: compile it too.`);
}

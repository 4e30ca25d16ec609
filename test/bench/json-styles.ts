/** JSON as the libraries of other languages write it. */

interface Writer {
  readonly comma: string;
  readonly colon: string;
  /** Indentation of each level; without it the JSON is on one line. */
  readonly indent?: string;
  /** Characters of a text that are escaped besides those that must be. */
  readonly escaped?: RegExp;
  /** Their escapes, where those are not `\uXXXX`. */
  readonly escapes?: Readonly<Record<string, string>>;
  /** Text after the value. */
  readonly end?: string;
}

const compact = { comma: ',', colon: ':' } as const;
const beyondAscii = /[\u007f-\uffff]/g;

const writers = {
  /** `JSON.stringify`. */
  javascript: compact,
  /** `json.dumps` as it is when no option is given. */
  python: { comma: ', ', colon: ': ', escaped: beyondAscii },
  /** `json.NewEncoder(w).Encode(v)`, safe for HTML. */
  go: { ...compact, escaped: /[<>&\u2028\u2029]/g, end: '\n' },
  /** Gson as it is when no option is given, safe for HTML. */
  java: { ...compact, escaped: /[<>&='\u2028\u2029]/g },
  /** `json_encode` as it is when no option is given. */
  php: { ...compact, escaped: /[/\u007f-\uffff]/g, escapes: { '/': '\\/' } },
  /** With two blanks for each level. */
  pretty: { comma: ',', colon: ': ', indent: '  ' },
} as const satisfies Readonly<Record<string, Writer>>;

/** A style of JSON. */
export type JsonStyle = keyof typeof writers;

/** All of them. */
export const jsonStyles = Object.keys(writers) as readonly JsonStyle[];

/** The value as JSON text. */
export function writeJson(value: unknown, style: JsonStyle): string {
  if (style === 'javascript') return JSON.stringify(value);
  const writer: Writer = writers[style];
  return written(value, writer, '\n') + (writer.end ?? '');
}

function written(value: unknown, writer: Writer, line: string): string {
  if (typeof value === 'string') return text(value, writer);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const isList = Array.isArray(value);
  const inner = writer.indent === undefined ? line : line + writer.indent;
  const items = isList
    ? value.map((one) => written(one, writer, inner))
    : Object.entries(value)
        .filter(([, member]) => member !== undefined)
        .map(([name, member]) => text(name, writer) + writer.colon + written(member, writer, inner));
  const [open, close] = isList ? ['[', ']'] : ['{', '}'];
  if (items.length === 0) return open + close;
  if (writer.indent === undefined) return open + items.join(writer.comma) + close;
  return open + inner + items.join(writer.comma + inner) + line + close;
}

function text(value: string, { escaped, escapes = {} }: Writer): string {
  const json = JSON.stringify(value);
  if (escaped === undefined) return json;
  return json.replace(
    escaped,
    (character) => escapes[character] ?? `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** Prints responses of the admin API as text, JSON or CSV. */
import type { JsonObject, JsonValue } from '../../model/json.ts';
import type { Given } from './options.ts';
import type { ListedItems } from './page.ts';
import type { Shown } from './row.ts';
import { csvOf, fieldsOf, sentenceOf, tableOf, textOf, valueAt } from './text.ts';

/** Prints a list and returns the exit code. */
export function printList(
  { items, hasMore, isPaged }: ListedItems,
  columns: readonly string[],
  given: Given,
): number {
  if (given['json'] === true) console.log(JSON.stringify(items));
  else if (given['csv'] === true) console.log(csvOf(items, columns));
  else if (items.length === 0) console.error('The list is empty.');
  else
    console.log(
      tableOf(
        items,
        columns.filter((column) => items.some((item) => valueAt(item, column) !== undefined)),
      ),
    );
  if (hasMore)
    console.error(`There are more items. To print more use --limit N${isPaged ? ' or --all' : ''}.`);
  return 0;
}

/** Further input of {@link printAnswer}. */
interface PrintContext {
  /** The thing that the command named. */
  readonly found: JsonObject;
  readonly isJson: boolean;
  /** Address of the gateway, for links. */
  readonly url: string;
}

/** Prints a response and returns the exit code: 1 when the response reports a failure, else 0. */
export function printAnswer(
  { output, says, link, columns }: Shown,
  answer: JsonObject,
  { found, isJson, url }: PrintContext,
): number {
  const code = failureIn(answer) ? 1 : 0;
  if (isJson) {
    console.log(JSON.stringify(answer));
    return code;
  }
  for (const warning of sentences(answer)) console.error(warning);
  if (says !== undefined) console.error(sentenceOf(says, { ...found, ...answer }));
  if (output !== undefined)
    console.log(`${link === undefined ? '' : `${url}${link}`}${textOf('', valueAt(answer, output))}`);
  else if (says === undefined) console.log(fieldsOf(thingOf(answer), columns && [...columns]));
  return code;
}

/** Members of responses that contain the thing itself. */
const wrappers = ['key', 'channel', 'entry', 'token', 'user'] as const;

function thingOf(answer: JsonObject): JsonObject {
  const inner = wrappers.map((name) => answer[name]).find((value) => isObject(value));
  return inner ?? answer;
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function failureIn(answer: JsonObject): boolean {
  return answer['ok'] === false || valueAt(answer, 'applied.ok') === false;
}

/** Returns the warnings and problems that the gateway reports. */
function sentences(answer: JsonObject): readonly string[] {
  const lists = [answer['warnings'], valueAt(answer, 'applied.problems')];
  return lists.flatMap((list) => (Array.isArray(list) ? list.map((one) => textOf('', one)) : []));
}

/** Types of the table from which the commands on top of the admin API are made. */
import type { JsonObject } from '../../model/json.ts';
import type { ThingKind } from './things.ts';

/** One positional argument of a command. */
export interface Word {
  /** Name in the help, such as `TEAM`. */
  readonly name: string;
  /** Field of the body or the query that the argument sets; `id` for the id in the path. */
  readonly field: string;
  /** Kind of thing that the argument names by id or name. Absent: the argument is the value. */
  readonly thing?: ThingKind;
  /** True when all further arguments belong to this one. */
  readonly many?: true;
  readonly optional?: true;
}

/** Output of a command. Default: all fields of the response. */
export interface Shown {
  /** Member of the response that contains the list. */
  readonly list?: string;
  /** Fields of the table of a list. */
  readonly columns?: readonly string[];
  /** Returns false for items to skip. */
  readonly keeps?: (item: JsonObject) => boolean;
  /** Path of the only text on standard output, such as an id, or a secret that is shown once. */
  readonly output?: string;
  /** Path in the dashboard. The text is printed as a link below it. */
  readonly link?: string;
  /** Message for standard error. `{name}` and `{id}` are replaced by those of the thing. */
  readonly says?: string;
}

/** A route that the OpenAPI document does not describe, because a plugin adds it. */
export interface OwnRoute {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  /** JSON Schema of the body. */
  readonly body?: JsonObject;
}

/** One command: `sluice GROUP VERB`. */
export interface Row {
  readonly group: string;
  /** Empty for the command without a verb, such as `sluice usage`. */
  readonly verb: string;
  readonly summary: string;
  /** Name of the operation of the admin API, or a function that returns it for the thing that the first argument names; or a route of a plugin. */
  readonly operation: string | ((thing: JsonObject) => string) | OwnRoute;
  readonly words?: readonly Word[];
  /** Constant fields of the body or the query. */
  readonly fixed?: JsonObject;
  /** Fields of the operation that become options. Default: all that nothing else sets. */
  readonly options?: readonly string[];
  /** Default values of options. */
  readonly defaults?: Readonly<Record<string, string>>;
  /** Prefix of the id in the path. */
  readonly prefix?: string;
  /** Kind of the value of a configuration entry, which is built from `--set`, `--secret` and `--file`. */
  readonly value?: 'channel' | 'object';
  /** For a first argument that names a record of the configuration history. Returns false for records that the command rejects. */
  readonly undoes?: (record: JsonObject) => boolean;
  /** Question for the confirmation before the command runs. `--yes` skips it. */
  readonly asks?: string;
  readonly shown?: Shown;
}

/** Types of the table from which the commands on top of the admin API are made. */
import type { JsonObject } from '../../model/json.ts';
import type { ThingKind } from './things.ts';

/** One positional argument of a command. */
export interface Word {
  /** As the help shows it: `TEAM`. */
  readonly name: string;
  /** Field of the body or the query that it fills; `id` is that of the path. */
  readonly field: string;
  /** The thing that it names by id or name. Absent: the text itself. */
  readonly thing?: ThingKind;
  /** True: all further arguments belong to it. */
  readonly many?: true;
  readonly optional?: true;
}

/** What a command does with the answer. Default: it prints all fields. */
export interface Shown {
  /** Member of the answer that is a list of things. */
  readonly list?: string;
  /** Fields of the table of a list. */
  readonly columns?: readonly string[];
  /** Returns false for items that are left out. */
  readonly keeps?: (item: JsonObject) => boolean;
  /** Path of the text that goes to standard output alone, such as an id or a secret that is shown once. */
  readonly output?: string;
  /** Path in the dashboard of the link that is made of that text. */
  readonly link?: string;
  /** Sentence about it, for standard error. `{name}` and `{id}` are those of the thing. */
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
  /** Name of the operation of the admin API, also by the thing that the first word names; or a route that only a plugin knows. */
  readonly operation: string | ((thing: JsonObject) => string) | OwnRoute;
  readonly words?: readonly Word[];
  /** Fields of the body or the query that are always the same. */
  readonly fixed?: JsonObject;
  /** Fields of the operation that options set. Default: all that are not set otherwise. */
  readonly options?: readonly string[];
  /** Values of options that are not given. */
  readonly defaults?: Readonly<Record<string, string>>;
  /** Prefix of the id in the path. */
  readonly prefix?: string;
  /** The value of an entry of the configuration is made from `--set`, `--secret` and `--file`: that of a channel, or any object. */
  readonly value?: 'channel' | 'object';
  /** The first word names a record of the history of the configuration. Returns false for one that the command refuses. */
  readonly undoes?: (record: JsonObject) => boolean;
  /** Question that is asked before anything is done, unless `--yes` is given. */
  readonly asks?: string;
  readonly shown?: Shown;
}

/**
 * Types of an agent that `sluice connect` sets up: its settings files, environment variables and command line; and functions to build its
 * edits.
 */
import type { JsonValue } from '../../model/json.ts';
import type { Edit, Syntax } from './documents/document.ts';

/** Address, API key and models with which an agent calls the gateway. */
export interface Access {
  /** Without `/v1` or a slash at its end. */
  readonly url: string;
  /** The API key itself, or the environment variable that holds it when the agent runs. */
  readonly key: { readonly value: string } | { readonly env: string };
  readonly model: string;
  /** For titles and summaries, where an agent has a model for them. */
  readonly smallModel: string;
  /** Maximum number of input tokens of the model, where the gateway knows it. */
  readonly inputLimit?: number;
}

/** Folders and variables that determine the paths of settings files. */
export interface SettingsEnvironment {
  readonly home: string;
  readonly platform: NodeJS.Platform;
  /** Returns a variable that moves these files, such as `XDG_CONFIG_HOME`; undefined for each in a temporary home. */
  variable(name: string): string | undefined;
}

/** One settings file and its changes. */
export interface FilePlan {
  readonly path: string;
  readonly syntax: Syntax;
  readonly edits: readonly Edit[];
}

/** All changes that connect one agent. */
export interface Plan {
  readonly files: readonly FilePlan[];
  /** Variables that the user must export, because the agent reads them nowhere else. */
  readonly exports?: Readonly<Record<string, string>>;
  /** Further steps and hints for the user. */
  readonly notes?: readonly string[];
}

/** Command line with which `sluice doctor agents` runs an agent. */
export interface Run {
  /** The name of its program. */
  readonly program: string;
  /** Arguments that ask one question, print the answer, and end. */
  arguments(question: string, access: Access): readonly string[];
  /** Further variables, where the agent needs them to run without a person. */
  readonly env?: Readonly<Record<string, string>>;
  /** A tool of its own by which the demo model can be made to use it; absent where it has none, or runs none without a person. */
  readonly tool?: string;
}

/** An agent that can be connected. */
export interface Agent {
  /** As the user writes it. */
  readonly name: string;
  readonly title: string;
  /** Other spellings. */
  readonly aliases?: readonly string[];
  plan(access: Access, environment: SettingsEnvironment): Plan;
  readonly run?: Run;
}

/** Returns the key where a file may hold it, or the variable in the agent's own spelling. */
export function keyText({ key }: Access, reference: (name: string) => string): string {
  return 'value' in key ? key.value : reference(key.env);
}

/** Returns edits that set members below a path, and remove those without a value. */
export function editsOf(
  members: Readonly<Record<string, JsonValue | undefined>>,
  ...path: readonly string[]
): readonly Edit[] {
  return Object.entries(members).map(([name, value]) => ({
    path: [...path, name],
    ...(value === undefined ? {} : { value }),
  }));
}

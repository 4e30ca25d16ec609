/** Builds checks from the options of the guard, each with its patterns or its remote judge. Throws for options that contradict each other. */
import { caller, matchesName, type Call } from 'sluice';
import { entityPatterns, type LabelledPattern } from './detectors/index.ts';
import type { CheckOptions } from './options.ts';
import { parsePattern } from './patterns/parse.ts';
import { wordsPattern } from './patterns/words.ts';
import { azure } from './remote/azure.ts';
import { bedrock } from './remote/bedrock.ts';
import { jsonSchema } from './remote/json-schema.ts';
import type { Judge, JudgeTools } from './remote/judge.ts';
import { lakera } from './remote/lakera.ts';
import { llmJudge } from './remote/llm-judge.ts';
import { modelArmor } from './remote/model-armor.ts';
import { moderation } from './remote/moderation.ts';
import { presidio } from './remote/presidio.ts';
import { webhook } from './remote/webhook.ts';

/** One check, ready to run. It has patterns or a judge. */
export interface Check {
  readonly name: string;
  readonly on: CheckOptions['on'];
  readonly action: CheckOptions['action'];
  readonly restore: boolean;
  readonly message: string | undefined;
  readonly patterns: readonly LabelledPattern[];
  /** Longest match of the patterns, in characters. */
  readonly longest: number;
  readonly remote: RemoteCheck | undefined;
  appliesTo(call: Call): boolean;
}

/** Part of a check that asks a service or a model about whole texts. */
export interface RemoteCheck {
  readonly judge: Judge;
  readonly parallel: boolean;
  readonly scope: 'all' | 'last';
  readonly whenDown: 'allow' | 'refuse';
  readonly longest: number;
  /** True where only the text of answers is checked, without reasoning and tool calls. */
  readonly answersOnly: boolean;
}

/** A check that asks a service or a model. */
export type RemotelyChecked = Check & { readonly remote: RemoteCheck };

/** Returns true for a check that asks a service or a model. */
export function isRemote(check: Check): check is RemotelyChecked {
  return check.remote !== undefined;
}

/** Returns true for a check that only reports: it neither changes nor refuses a call. */
export function tells({ action }: Pick<Check, 'action'>): boolean {
  return action === 'tag' || action === 'alert';
}

/** Services that report the positions of what they find, as masking requires. */
const finding: ReadonlySet<string> = new Set(['presidio', 'lakera', 'bedrock', 'webhook']);
const localKinds: ReadonlySet<string> = new Set(['entities', 'words', 'patterns']);
/** Maximum length of matches of entities, in characters: a private key is one of them. */
const longestEntity = 8_192;

/** Builds a check from its options. Throws an Error that names the check where options contradict each other. */
export function createCheck(options: CheckOptions, tools: Omit<JudgeTools, 'timeout'>): Check {
  const { name, on, action, models, keys, message } = options;
  const fail = (what: string): never => {
    throw new Error(`guard: the check "${name}" ${what}`);
  };
  const isLocal = localKinds.has(options.kind);
  const restore = 'restore' in options && options.restore;
  if (restore && action !== 'mask') fail('has "restore", which needs action "mask".');
  if (restore && on === 'response')
    fail('has "restore", which needs the request: set "on" to "request" or "both".');
  if (action === 'mask' && !isLocal) {
    if (!finding.has(options.kind)) fail(`cannot mask: "${options.kind}" does not report positions.`);
    if (on !== 'request') fail('can mask requests only: set "on" to "request".');
    if ('scope' in options && options.scope === 'last') fail('masks, which needs scope "all".');
  }
  if ('parallel' in options && options.parallel && action === 'mask')
    fail('masks, so that it cannot run in parallel.');
  if (options.kind === 'json-schema' && on !== 'response')
    fail('looks at responses only: set "on" to "response".');
  const namesModel = models === undefined ? undefined : (model: string) => matchesName(models, model);
  const namesKey = keys === undefined ? undefined : keyTest(keys);
  try {
    return {
      name,
      on,
      action,
      restore,
      message,
      ...patternsOf(options),
      remote: isLocal ? undefined : remoteOf(options, tools),
      appliesTo: (call) => namesModel?.(call.model) !== false && namesKey?.(call) !== false,
    };
  } catch (error) {
    if (error instanceof Error) return fail(`is not usable: ${error.message}`);
    throw error;
  }
}

function patternsOf(options: CheckOptions): Pick<Check, 'patterns' | 'longest'> {
  switch (options.kind) {
    case 'entities':
      return { patterns: entityPatterns(options.entities), longest: longestEntity };
    case 'words': {
      const { words, label } = options;
      const longest = words.reduce((most, { length }) => Math.max(most, length), 0) + 1;
      return { patterns: [{ label, node: wordsPattern(words, options) }], longest };
    }
    case 'patterns':
      return {
        patterns: options.patterns.map(({ pattern, ignoreCase, label }) => ({
          label,
          node: parsePattern(pattern, ignoreCase),
        })),
        longest: options.window,
      };
    default:
      return { patterns: [], longest: 0 };
  }
}

function remoteOf(options: CheckOptions, tools: Omit<JudgeTools, 'timeout'>): RemoteCheck {
  const { parallel, scope, whenDown, longest, timeout } =
    'timeout' in options
      ? options
      : ({ parallel: false, scope: 'all', whenDown: 'refuse', longest: 16_000_000, timeout: 0 } as const);
  const judge = judgeOf(options, { ...tools, timeout });
  return { judge, parallel, scope, whenDown, longest, answersOnly: options.kind === 'json-schema' };
}

function judgeOf(options: CheckOptions, tools: JudgeTools): Judge {
  switch (options.kind) {
    case 'json-schema':
      return jsonSchema(options);
    case 'moderation':
      return moderation(options, tools);
    case 'judge':
      return llmJudge(options, tools);
    case 'webhook':
      return webhook(options, tools);
    case 'bedrock':
      return bedrock(options, tools);
    case 'azure-content-safety':
      return azure(options, tools);
    case 'model-armor':
      return modelArmor(options, tools);
    case 'lakera':
      return lakera(options, tools);
    case 'presidio':
      return presidio(options, tools);
    default:
      throw new Error(`"${options.kind}" asks nobody.`);
  }
}

function keyTest(keys: readonly string[]): (call: Call) => boolean {
  return (call) => {
    const key = call.get(caller);
    return key !== undefined && (keys.includes(key.id) || matchesName(keys, key.name));
  };
}

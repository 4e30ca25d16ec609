/**
 * Resolves forced tools (`tool_choice`) for models that refuse them, or that refuse them while they think: turns reasoning off, or lets the
 * model choose.
 */
import type { ChatRequest, ChatSettings, ToolChoice } from '../../model/chat.ts';
import type { ModelTraits } from '../../model/traits.ts';
import { canStopThinking, thinksAbout } from '../../model/thinks.ts';

/** A request, and the traits of its model as they hold for it. */
export interface SettledRequest {
  readonly request: ChatRequest;
  readonly traits: ModelTraits;
}

/**
 * Resolves forced tools for a model that does not always accept them. A forced tool, or a schema that a forced tool stands in for, takes
 * precedence over reasoning, which is switched off if the model allows that. Otherwise the model chooses whether to call the tool, and the
 * returned traits say that no tool can be forced. `usual`: rule of the format for models without the trait. Changes are reported to `drop`.
 */
export function settleForcedTools(
  request: ChatRequest,
  traits: ModelTraits,
  usual: ModelTraits['forcedTools'],
  drop: (path: string) => void,
): SettledRequest {
  const effective = isJsonWithoutThinking(request, traits) ? thoughtless(request, traits, drop) : request;
  const settled = settleByRule(effective, traits, traits.forcedTools ?? usual ?? 'always', drop);
  if (traits.namedTools === false) return { ...settled, request: withTheOnlyTool(settled.request) };
  if (traits.requiredTools === false) return { ...settled, request: withNamedTool(settled.request, drop) };
  return settled;
}

function settleByRule(
  request: ChatRequest,
  traits: ModelTraits,
  rule: NonNullable<ModelTraits['forcedTools']>,
  drop: (path: string) => void,
): SettledRequest {
  if (rule === 'always' || request.operation !== 'chat') return { request, traits };
  const { toolChoice, settings } = request;
  const isForced = isForcedChoice(toolChoice) && request.tools.length > 0;
  if (!isForced && !standsIn(settings, traits)) return { request, traits };
  if (rule === 'without-thinking') {
    if (!thinksAbout(settings.reasoning, traits)) return { request, traits };
    if (canStopThinking(traits)) return { request: thoughtless(request, traits, drop), traits };
  }
  const free = { ...traits, forcedTools: 'never' } as const;
  if (!isForced) return { request, traits: free };
  drop('tool_choice');
  return { request: { ...request, toolChoice: unforced(toolChoice) }, traits: free };
}

/** Forces a named tool on a model that accepts only "required": removes all other tools. */
function withTheOnlyTool(request: ChatRequest): ChatRequest {
  const { toolChoice, tools } = request;
  if (toolChoice?.type !== 'tool') return request;
  const named = tools.filter(({ name }) => name === toolChoice.name);
  return named.length === 0 ? request : { ...request, tools: named, toolChoice: { type: 'required' } };
}

/** Replaces "required" by the tool's name for a model that accepts only names. With several tools the model chooses whether to call any. */
function withNamedTool(request: ChatRequest, drop: (path: string) => void): ChatRequest {
  const { toolChoice, tools } = request;
  if (tools.length === 0 || !isForcedChoice(toolChoice) || toolChoice.type === 'tool') return request;
  const names = toolChoice.type === 'allowed' ? toolChoice.names : tools.map(({ name = '' }) => name);
  const [name = ''] = names;
  if (names.length === 1 && name !== '') return { ...request, toolChoice: { type: 'tool', name } };
  drop('tool_choice');
  return { ...request, toolChoice: unforced(toolChoice) };
}

/** Returns true for a choice that leaves the model no answer without a call. */
export function isForcedChoice(choice: ToolChoice | undefined): choice is ToolChoice {
  if (choice?.type === 'allowed') return choice.mode === 'required';
  return choice !== undefined && choice.type !== 'auto' && choice.type !== 'none';
}

/** Returns true for JSON output of a model that returns none while it thinks, and whose thinking can be turned off. */
function isJsonWithoutThinking({ operation, settings }: ChatRequest, traits: ModelTraits): boolean {
  const { responseFormat, reasoning } = settings;
  if (operation !== 'chat') return false;
  if (traits.jsonThinking !== false || responseFormat === undefined || responseFormat.type === 'text')
    return false;
  return thinksAbout(reasoning, traits) && canStopThinking(traits);
}

/** Returns true when a forced tool stands in for structured output. */
function standsIn({ responseFormat }: ChatSettings, { jsonSchema, refuses }: ModelTraits): boolean {
  if (jsonSchema !== false || refuses?.includes('responseFormat') === true) return false;
  return responseFormat?.type === 'json-schema' && responseFormat.schema !== undefined;
}

function unforced(choice: ToolChoice): ToolChoice {
  return choice.type === 'allowed' ? { ...choice, mode: 'auto' } : { type: 'auto' };
}

/** Returns settings that disable reasoning. Returns them unchanged for a model that does not reason by default. */
export function withoutThinking(settings: ChatSettings, traits: ModelTraits): ChatSettings {
  const { reasoning: _, ...rest } = settings;
  return traits.thinksByDefault === true ? { ...rest, reasoning: { mode: 'off' } } : rest;
}

function thoughtless(request: ChatRequest, traits: ModelTraits, drop: (path: string) => void): ChatRequest {
  drop('settings.reasoning');
  return { ...request, settings: withoutThinking(request.settings, traits) };
}

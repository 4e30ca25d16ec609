import type { ChatRequest, ChatSettings, ToolChoice } from '../../model/chat.ts';
import type { ModelTraits } from '../../model/traits.ts';
import { canStopThinking, thinksAbout } from '../../model/thinks.ts';

/** A request, and the traits of its model as they hold for it. */
export interface SettledRequest {
  readonly request: ChatRequest;
  readonly traits: ModelTraits;
}

/**
 * Settles forced tools on a model that does not always take them. A forced tool and a schema that a forced tool stands in for are contracts, and
 * thinking is not: the model does not think about this request where it can be told so. Elsewhere the model chooses whether to call the tool, and
 * the traits say that no tool can be forced. `usual` is the rule of the format for models whose traits state none. What changes is reported.
 */
export function settleForcedTools(
  request: ChatRequest,
  traits: ModelTraits,
  usual: ModelTraits['forcedTools'],
  drop: (path: string) => void,
): SettledRequest {
  const asked = isJsonWithoutThinking(request, traits) ? thoughtless(request, traits, drop) : request;
  const settled = settleByRule(asked, traits, traits.forcedTools ?? usual ?? 'always', drop);
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

/** A tool that is forced by its name, where the model can only be told to call any: it gets no other. */
function withTheOnlyTool(request: ChatRequest): ChatRequest {
  const { toolChoice, tools } = request;
  if (toolChoice?.type !== 'tool') return request;
  const named = tools.filter(({ name }) => name === toolChoice.name);
  return named.length === 0 ? request : { ...request, tools: named, toolChoice: { type: 'required' } };
}

/** A tool that must be called, where the model can only be told which: the only one. Among several the model chooses whether to call any. */
function withNamedTool(request: ChatRequest, drop: (path: string) => void): ChatRequest {
  const { toolChoice, tools } = request;
  if (tools.length === 0 || !isForcedChoice(toolChoice) || toolChoice.type === 'tool') return request;
  const names = toolChoice.type === 'allowed' ? toolChoice.names : tools.map(({ name = '' }) => name);
  const [name = ''] = names;
  if (names.length === 1 && name !== '') return { ...request, toolChoice: { type: 'tool', name } };
  drop('tool_choice');
  return { ...request, toolChoice: unforced(toolChoice) };
}

/** True for a choice that leaves the model no answer without a call. */
export function isForcedChoice(choice: ToolChoice | undefined): choice is ToolChoice {
  if (choice?.type === 'allowed') return choice.mode === 'required';
  return choice !== undefined && choice.type !== 'auto' && choice.type !== 'none';
}

/** True for JSON from a model that would think about it, gives none then, and can be told not to think. */
function isJsonWithoutThinking({ operation, settings }: ChatRequest, traits: ModelTraits): boolean {
  const { responseFormat, reasoning } = settings;
  if (operation !== 'chat') return false;
  if (traits.jsonThinking !== false || responseFormat === undefined || responseFormat.type === 'text')
    return false;
  return thinksAbout(reasoning, traits) && canStopThinking(traits);
}

/** True where a forced tool stands in for structured output. */
function standsIn({ responseFormat }: ChatSettings, { jsonSchema, refuses }: ModelTraits): boolean {
  if (jsonSchema !== false || refuses?.includes('responseFormat') === true) return false;
  return responseFormat?.type === 'json-schema' && responseFormat.schema !== undefined;
}

function unforced(choice: ToolChoice): ToolChoice {
  return choice.type === 'allowed' ? { ...choice, mode: 'auto' } : { type: 'auto' };
}

/** Returns settings with which the model does not think. A model that does not think by itself needs no word against it. */
export function withoutThinking(settings: ChatSettings, traits: ModelTraits): ChatSettings {
  const { reasoning: _, ...rest } = settings;
  return traits.thinksByDefault === true ? { ...rest, reasoning: { mode: 'off' } } : rest;
}

function thoughtless(request: ChatRequest, traits: ModelTraits, drop: (path: string) => void): ChatRequest {
  drop('settings.reasoning');
  return { ...request, settings: withoutThinking(request.settings, traits) };
}

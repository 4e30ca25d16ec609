import { type GatewayError, type RefusedMember, upstreamFailureOf } from 'sluice';
import { isProtected } from './protected.ts';

/** Maximum number of members that one refusal may name. */
const mostNamed = 8;

/** Maximum length in characters of a sentence that is read. */
const longestSentence = 4000;

/** Deepest path that a refusal may name, and the form of its names. */
const path = /^[A-Za-z_][\w-]{0,63}(?:\.[A-Za-z_][\w-]{0,63}){0,2}$/;

/** Pattern of a message that members are not supported. Group `name` is the member, `place` the path of the object that holds it. */
interface Sentence {
  readonly pattern: RegExp;
  readonly beside?: string;
}

/**
 * Sentences of providers, as their users quote them in public issues. Each names its place, or stands at the beginning: the same words about a
 * member of a message or of a tool are no refusal of a setting.
 */
const sentences: readonly Sentence[] = [
  // OpenAI and Azure: teilomillet/gollm#33, caozhiyuan/copilot-api#164.
  { pattern: /^unsupported parameter: ['"`](?<name>[\w.-]+)['"`]/gi },
  // OpenAI and Azure: OpenHands/OpenHands#4131. Where several values are supported, another value is the client's to choose.
  { pattern: /^unsupported value: ['"`](?<name>[\w.-]+)['"`] .*only the default/gi },
  // OpenAI: teabranch/open-responses-server#41, cursor/cursor#2786.
  { pattern: /^unknown parameter: ['"`]?(?<name>[\w.-]+)['"`]/gi },
  // OpenAI and Azure: guidance-ai/guidance#89, generative-computing/mellea#270.
  { pattern: /^unrecognized request arguments? supplied: (?<name>[\w.-]+)$/gi },
  // Anthropic: anthropics/claude-code#14135. Mistral, vLLM and others with pydantic, behind `body`: openclaude#739, crewAI#60.
  { pattern: /(?:^|; |: )(?<name>[\w.-]+): extra (?:inputs are|fields) not permitted/gi },
  // Anthropic, also behind the words of Bedrock: infiniflow/ragflow#11815, skydiscover#15.
  {
    pattern: /(?:^|: )[`'"]?temperature[`'"]? and [`'"]?(?<name>top_p)[`'"]? cannot both be specified/gi,
    beside: 'temperature',
  },
  // Anthropic: pollinations/pollinations#11319, vierisid/jarvis#217.
  { pattern: /(?:^|: )[`'"]?(?<name>[\w.-]+)[`'"]? is deprecated for this model/gi },
  // Gemini, one line for each member: SkyrimNet-GamePlugin#77, Laisky/one-api#272.
  { pattern: /unknown name "(?<name>[\w.-]+)"(?: at '(?<place>[^']+)')?: cannot find field/gi },
  // Groq: fanenr/chatbot#21, musistudio/llms#64.
  { pattern: /^property ['"`](?<name>[\w.-]+)['"`] is unsupported/gi },
  // Fireworks: anomalyco/opencode#4386.
  { pattern: /^extra inputs are not permitted, field: ['"`](?<name>[\w.-]+)['"`]/gi },
  // NVIDIA, which prints the errors of pydantic as Python does: sipeed/picoclaw#1019, NVIDIA/garak#748.
  { pattern: /'type': 'extra_forbidden', 'loc': \('body', '(?<name>[\w.-]+)'\)/gi },
  // Databricks: databricks/databricks-sdk-py#1263.
  { pattern: /\bjson: unknown field "(?<name>[\w.-]+)"/gi },
  // Cohere: OpenRouterTeam/openrouter-examples#71.
  { pattern: /^unknown field: parameter '(?<name>[\w.-]+)' is not a valid field/gi },
  // Moonshot, whose models have one value of it: LiteLLM 1.110.2, llms/moonshot/chat/transformation.py.
  { pattern: /^invalid (?<name>[\w.-]+): only [\d.]+ is allowed for this model/gi },
  // xAI: n8n-io/n8n#14581, charmbracelet/crush#386.
  { pattern: /^argument not supported on this model: (?<name>[\w.-]+)/gi },
  // xAI: open-webui/open-webui#21266.
  { pattern: /^model \S+ does not support parameter (?<name>[\w-]+(?:\.[\w-]+)*)/gi },
  // Bedrock: pingcap/autoflow#574, ruby_llm#586.
  { pattern: /#(?<place>[\w/.-]*): extraneous key \[(?<name>[\w.-]+)\] is not permitted/gi },
];

/** Words beside a `param` that mean that the provider does not support it, whatever its value. */
const unsupported =
  /\b(?:unsupported|not supported|does not support|unknown|unrecognized|unrecognised|not permitted|extra)\b.{0,40}\b(?:parameter|argument|field|property|inputs?|option)s?\b|\b(?:parameter|argument|field|property|option)\b.{0,100}\b(?:unsupported|not supported|unknown|unrecognized|not permitted)\b/is;

/** Words of a refusal that holds only for this request: other requests with the member may be accepted, and another member is equally at fault. */
const conditional = /\b(?:when|if|unless|while|together|combination|combined)\b/i;

/** Names of the output limit in chat completions, of which a provider takes one or the other. */
const limits: Readonly<Record<string, string>> = {
  max_tokens: 'max_completion_tokens',
  max_completion_tokens: 'max_tokens',
};

/**
 * Returns the members that a provider's refusal names and a request can do without. Undefined for any other error, and where a member is named
 * that a request must keep: its messages, tools, schemas, limits, and what changes its price or safety.
 */
export function namedMembers(error: GatewayError, format: string): readonly RefusedMember[] | undefined {
  const failure = upstreamFailureOf(error);
  if (failure?.fault !== 'bad-request' || (failure.status !== 400 && failure.status !== 422))
    return undefined;
  const named = namedIn(failure.message.slice(0, longestSentence), error.param);
  if (named.length === 0 || named.length > mostNamed) return undefined;
  const members = named.map((member) => renamedLimit(member, format));
  const mayGo = members.every(
    ({ path: name, as }) => path.test(name) && (as !== undefined || !isProtected(name)),
  );
  return mayGo ? members : undefined;
}

function namedIn(sentence: string, param: string | undefined): readonly RefusedMember[] {
  // The client has to write another member in its place.
  if (/\bhas moved to\b/i.test(sentence) || conditional.test(sentence)) return [];
  const found = new Map<string, RefusedMember>();
  for (const { pattern, beside } of sentences)
    for (const { groups } of sentence.matchAll(pattern)) {
      const name = pathOf(groups?.place, groups?.name ?? '');
      found.set(name, { path: name, ...(beside === undefined ? {} : { beside }) });
    }
  if (found.size > 0) return [...found.values()];
  return param !== undefined && isUnsupported(sentence) ? [{ path: pathOf(undefined, param) }] : [];
}

function isUnsupported(sentence: string): boolean {
  return !/^(?:invalid|unsupported) value\b/i.test(sentence) && unsupported.test(sentence);
}

/** Joins path and name into one dotted path. Validators put `body` before the members of a request. */
function pathOf(location: string | undefined, name: string): string {
  const names = `${location ?? ''}.${name}`.split(/[./[\]]+/).filter((part) => part !== '');
  return (names[0] === 'body' && names.length > 1 ? names.slice(1) : names).join('.');
}

/** Returns the edit for a rejected output limit, which is never dropped. In chat completions its value moves to the other name of the limit. */
function renamedLimit(member: RefusedMember, format: string): RefusedMember {
  const as = format === 'chat-completions' ? limits[member.path] : undefined;
  return as === undefined ? member : { ...member, as };
}

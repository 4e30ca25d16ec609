import { isObject, parseObject, type ChatRequest, type JsonObject, type JsonValue } from 'sluice';
import { responsesCodec, type Codec, type Frame, type StreamDecoder } from 'sluice/channel-kit';
import { objectsOf } from '../_kit/dialect/chat-dialect.ts';

/**
 * Responses in the words of the Agent API, for clients of other formats: sources stand in items of their own, and the text names them by their
 * numbers, `[1]`. They become annotations. Clients of Responses get replies as they are.
 * https://docs.perplexity.ai/api-reference/agent-post; https://docs.perplexity.ai/docs/cookbook/articles/streaming-citations
 */
export const chat: Codec<ChatRequest> = {
  ...responsesCodec,
  encodeRequest(request, target) {
    const { search, rest } = searchOf(request);
    const encoded = responsesCodec.encodeRequest(rest, target);
    const { include, ...body } = encoded.body;
    // The Agent API has no encrypted reasoning, which the codec requests for clients of other formats.
    const withReasoning =
      request.format !== responsesCodec.format || include === undefined ? body : { ...body, include };
    return { ...encoded, body: withSearch(withReasoning, search) };
  },
  decodeStream: (traits) => new AgentDecoder(responsesCodec.decodeStream(traits)),
  decodeWhole: (body, traits) =>
    responsesCodec.decodeWhole(withoutSearches(cited(body, sourcesIn(body['output']))), traits),
};

/** Members of Sonar's chat completions that are filters of the search tool here. https://docs.perplexity.ai/docs/agent-api/tools/web-search */
const filterNames = [
  'search_domain_filter',
  'search_recency_filter',
  'search_after_date_filter',
  'search_before_date_filter',
  'last_updated_after_filter',
  'last_updated_before_filter',
] as const;
const chatCompletions = 'chat-completions';

/** Moves the search settings of chat completions into options of the search tool, and returns the request without them. */
function searchOf(request: ChatRequest): { readonly search: JsonObject; readonly rest: ChatRequest } {
  const own = request.extra?.[chatCompletions] ?? {};
  const [filters, others] = split(own, filterNames);
  const tool = request.tools.find(({ type }) => type === 'web-search');
  const [size, left] = split(tool?.extra?.[chatCompletions] ?? {}, ['search_context_size']);
  const search = { ...size, ...(isEmpty(filters) ? {} : { filters }) };
  if (isEmpty(search)) return { search, rest: request };
  const tools = request.tools.map((one) =>
    one === tool ? { ...one, extra: { ...one.extra, [chatCompletions]: left } } : one,
  );
  return { search, rest: { ...request, tools, extra: { ...request.extra, [chatCompletions]: others } } };
}

function split(object: JsonObject, names: readonly string[]): readonly [taken: JsonObject, left: JsonObject] {
  const entries = Object.entries(object);
  return [
    Object.fromEntries(entries.filter(([name, value]) => names.includes(name) && value !== null)),
    Object.fromEntries(entries.filter(([name]) => !names.includes(name))),
  ];
}

const isEmpty = (object: JsonObject): boolean => Object.keys(object).length === 0;

/** Adds the search tool with its options. It replaces the options of that tool in a preset, and keeps the preset's other tools. */
function withSearch(body: JsonObject, search: JsonObject): JsonObject {
  if (isEmpty(search)) return body;
  const tools = objectsOf(body['tools']);
  const known = tools.some(({ type }) => type === 'web_search');
  return {
    ...body,
    tools: known
      ? tools.map((tool) => (tool['type'] === 'web_search' ? { ...tool, ...search } : tool))
      : [...tools, { type: 'web_search', ...search }],
  };
}

/** More thoughts of one stream are left out. */
const mostThoughts = 500;
/** Places of thoughts in the output, behind those of the provider's items. */
const firstThought = 10_000;
const mostSources = 1000;
/** Names of events that are changed, in the field of a frame or in its data. */
const ownEvents = /response\.(?:reasoning\.|output_item\.|completed|incomplete)/;

/** Reads a stream: its sources come in events and items of their own, and its thoughts in events that belong to no item. */
class AgentDecoder implements StreamDecoder {
  readonly #inner: StreamDecoder;
  readonly #sources = new Map<number, JsonObject>();
  #thoughts = 0;

  constructor(inner: StreamDecoder) {
    this.#inner = inner;
  }

  frame(frame: Frame): ReturnType<StreamDecoder['frame']> {
    // Most events are pieces of text, which the inner decoder parses.
    if (!ownEvents.test(frame.event ?? frame.data)) return this.#inner.frame(frame);
    const event = parseObject(frame.data);
    if (event === undefined) return this.#inner.frame(frame);
    const { type = frame.event } = event;
    if (typeof type === 'string' && type.startsWith('response.reasoning.')) return this.#thought(event);
    if (type === 'response.output_item.added' && isSearch(event['item'])) return [];
    if (type === 'response.output_item.done') return this.#item(frame, event);
    if (type === 'response.completed' || type === 'response.incomplete')
      return this.#forward(frame, { ...event, response: this.#whole(event['response']) });
    return this.#inner.frame(frame);
  }

  end(): ReturnType<StreamDecoder['end']> {
    return this.#inner.end();
  }

  #forward(frame: Frame, event: JsonObject): ReturnType<StreamDecoder['frame']> {
    return this.#inner.frame({ ...frame, data: JSON.stringify(event) });
  }

  /** Converts the model's thoughts while it searches into an item of reasoning. */
  #thought({ thought, results }: JsonObject): ReturnType<StreamDecoder['frame']> {
    this.#remember(objectsOf(results));
    if (typeof thought !== 'string' || thought === '' || this.#thoughts >= mostThoughts) return [];
    const index = firstThought + this.#thoughts;
    this.#thoughts += 1;
    const item = { type: 'reasoning', id: `rs_${index}`, summary: [{ type: 'summary_text', text: thought }] };
    const data = JSON.stringify({ type: 'response.output_item.done', output_index: index, item });
    return this.#inner.frame({ data } as Frame);
  }

  #item(frame: Frame, event: JsonObject): ReturnType<StreamDecoder['frame']> {
    const item = isObject(event['item']) ? event['item'] : {};
    this.#remember([...sourcesIn([item]).values()]);
    if (isSearch(item)) return [];
    if (item['type'] !== 'message') return this.#inner.frame(frame);
    return this.#forward(frame, { ...event, item: citedItem(item, this.#sources) });
  }

  #whole(response: JsonValue | undefined): JsonObject {
    const whole = isObject(response) ? response : {};
    this.#remember([...sourcesIn(whole['output']).values()]);
    return withoutSearches(cited(whole, this.#sources));
  }

  #remember(results: readonly JsonObject[]): void {
    for (const one of results)
      if (typeof one['id'] === 'number' && typeof one['url'] === 'string' && this.#sources.size < mostSources)
        this.#sources.set(one['id'], one);
  }
}

/** Returns true for what a search found, which the annotations tell. */
function isSearch(item: JsonValue | undefined): boolean {
  return isObject(item) && item['type'] === 'search_results';
}

function withoutSearches(response: JsonObject): JsonObject {
  const { output } = response;
  return Array.isArray(output) ? { ...response, output: output.filter((item) => !isSearch(item)) } : response;
}

/** Returns the results of the searches in an output, by their numbers. */
function sourcesIn(output: JsonValue | undefined): ReadonlyMap<number, JsonObject> {
  const results = objectsOf(output)
    .filter(isSearch)
    .flatMap((item) => objectsOf(item['results']));
  return new Map(
    results.flatMap((one) =>
      typeof one['id'] === 'number' && typeof one['url'] === 'string' ? [[one['id'], one] as const] : [],
    ),
  );
}

/** Returns the response with annotations of the sources that its texts name. Items keep their places. */
function cited(response: JsonObject, sources: ReadonlyMap<number, JsonObject>): JsonObject {
  if (!Array.isArray(response['output'])) return response;
  const output = response['output'] as readonly JsonValue[];
  return {
    ...response,
    output: output.map((item) =>
      isObject(item) && item['type'] === 'message' ? citedItem(item, sources) : item,
    ),
  };
}

function citedItem(item: JsonObject, sources: ReadonlyMap<number, JsonObject>): JsonObject {
  return {
    ...item,
    content: objectsOf(item['content']).map((part) => {
      const { text, annotations } = part;
      if (typeof text !== 'string' || objectsOf(annotations).length > 0) return part;
      return { ...part, annotations: annotationsOf(text, sources) };
    }),
  };
}

/** Returns each source once, at the place where the text names it first. */
function annotationsOf(text: string, sources: ReadonlyMap<number, JsonObject>): readonly JsonObject[] {
  const seen = new Set<number>();
  return [...text.matchAll(/\[(\d{1,3})\]/g)].flatMap(({ 0: mark, 1: number, index }) => {
    const id = Number(number);
    const source = sources.get(id);
    if (source === undefined || seen.has(id)) return [];
    seen.add(id);
    const { url = '', title = '' } = source;
    return [{ type: 'url_citation', url, title, start_index: index, end_index: index + mark.length }];
  });
}

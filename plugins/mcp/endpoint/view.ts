/** Tools, prompts and resources that one caller may use, of all servers. */
import type { Prompt, Resource, ResourceTemplateType, Tool } from '@modelcontextprotocol/client';
import type { Log } from 'sluice';
import type { Rights } from './access.ts';
import type { NameScheme } from './names.ts';
import type { McpServerSdk } from './sdk.ts';
import type { Exposed, Upstream } from './upstream.ts';

/** Maximum length of a URI that is matched with templates. */
const maxUri = 4_096;

/** The lists of a caller, and who serves an entry of them. */
export class View {
  readonly #upstreams: () => readonly Upstream[];
  readonly #rights: Rights;
  readonly #parts: { readonly scheme: NameScheme; readonly log: Log; readonly sdk: McpServerSdk };

  /** `upstreams` returns the servers that the caller may use, in the order of the config. */
  constructor(
    upstreams: () => readonly Upstream[],
    rights: Rights,
    parts: { readonly scheme: NameScheme; readonly log: Log; readonly sdk: McpServerSdk },
  ) {
    this.#upstreams = upstreams;
    this.#rights = rights;
    this.#parts = parts;
  }

  /** Returns the caller's tools under their exposed names. Those of servers that are down are missing. */
  async tools(signal: AbortSignal): Promise<readonly Tool[]> {
    const lists = await this.#all((upstream) => this.#ownTools(upstream, signal));
    return lists.map(({ entry, exposed }) => ({ ...entry, name: exposed }));
  }

  async prompts(): Promise<readonly Prompt[]> {
    const lists = await this.#all((upstream) => this.#ownPrompts(upstream));
    return lists.map(({ entry, exposed }) => ({ ...entry, name: exposed }));
  }

  /** Returns the resources of all servers. Of two with one URI the first counts. */
  async resources(): Promise<readonly Resource[]> {
    return uniqueBy(await this.#all((upstream) => upstream.listResources()), ({ uri }) => uri);
  }

  async templates(): Promise<readonly ResourceTemplateType[]> {
    return uniqueBy(
      await this.#all((upstream) => upstream.listTemplates()),
      ({ uriTemplate }) => uriTemplate,
    );
  }

  /** Returns the server of a tool. Asks that server alone. */
  async tool(exposed: string, signal: AbortSignal): Promise<{ upstream: Upstream; tool: Tool } | undefined> {
    const upstream = this.#byPrefix(exposed);
    const tool = upstream && this.#permittedOne(upstream, await upstream.listTools(signal), exposed);
    return upstream && tool && { upstream, tool };
  }

  async prompt(exposed: string): Promise<{ upstream: Upstream; prompt: Prompt } | undefined> {
    const upstream = this.#byPrefix(exposed);
    const prompt = upstream && this.#permittedOne(upstream, await upstream.listPrompts(), exposed);
    return upstream && prompt && { upstream, prompt };
  }

  /** Returns the server that lists a URI, or has a template for it. */
  async ownerOf(uri: string): Promise<Upstream | undefined> {
    const upstreams = this.#upstreams();
    for (const upstream of upstreams)
      if ((await this.#orNone(upstream, () => upstream.listResources())).some((one) => one.uri === uri))
        return upstream;
    if (uri.length > maxUri) return undefined;
    for (const upstream of upstreams)
      if ((await this.#orNone(upstream, () => upstream.listTemplates())).some((one) => this.#fits(one, uri)))
        return upstream;
    return undefined;
  }

  /** Returns the server that has a template of resources. */
  async templateOwner(uriTemplate: string): Promise<Upstream | undefined> {
    for (const upstream of this.#upstreams())
      if (
        (await this.#orNone(upstream, () => upstream.listTemplates())).some(
          (one) => one.uriTemplate === uriTemplate,
        )
      )
        return upstream;
    return undefined;
  }

  #fits({ uriTemplate }: ResourceTemplateType, uri: string): boolean {
    try {
      return new this.#parts.sdk.UriTemplate(uriTemplate).match(uri) !== null;
    } catch {
      return false;
    }
  }

  #byPrefix(exposed: string): Upstream | undefined {
    const prefix = this.#parts.scheme.prefixOf(exposed);
    return this.#upstreams().find((upstream) => upstream.prefix === prefix);
  }

  async #ownTools(upstream: Upstream, signal: AbortSignal): Promise<readonly Exposed<Tool>[]> {
    return this.#permitted(upstream, await upstream.listTools(signal));
  }

  async #ownPrompts(upstream: Upstream): Promise<readonly Exposed<Prompt>[]> {
    return this.#permitted(upstream, await upstream.listPrompts());
  }

  #permitted<T extends { readonly name: string }>(
    { config }: Upstream,
    entries: readonly Exposed<T>[],
  ): readonly Exposed<T>[] {
    return entries.filter(({ entry, exposed }) => this.#rights.mayCall(config, entry.name, exposed));
  }

  /** Returns the entry of this name, where the caller may use it. */
  #permittedOne<T extends { readonly name: string }>(
    { config }: Upstream,
    entries: readonly Exposed<T>[],
    name: string,
  ): T | undefined {
    const entry = entries.find(({ exposed }) => exposed === name)?.entry;
    return entry !== undefined && this.#rights.mayCall(config, entry.name, name) ? entry : undefined;
  }

  /** Queries all servers in parallel. A failed server contributes nothing, and its error is logged. */
  async #all<T>(read: (upstream: Upstream) => Promise<readonly T[]>): Promise<readonly T[]> {
    const lists = await Promise.all(
      this.#upstreams().map((upstream) => this.#orNone(upstream, () => read(upstream))),
    );
    return lists.flat();
  }

  async #orNone<T>(upstream: Upstream, read: () => Promise<readonly T[]>): Promise<readonly T[]> {
    try {
      return await read();
    } catch (error) {
      this.#parts.log.warn({ server: upstream.name, error }, 'an MCP server is missing from a list');
      return [];
    }
  }
}

function uniqueBy<T>(entries: readonly T[], key: (entry: T) => string): readonly T[] {
  return [...new Map(entries.toReversed().map((entry) => [key(entry), entry])).values()].toReversed();
}

import type { Catalog } from 'sluice';
import { providerName } from './names.ts';

/** Maximum number of models that metrics tell apart. */
const maxModels = 200;

/** Milliseconds after which the list of models is read again. */
const freshness = 60_000;

/** Names of providers, and of models for metrics. Both are bounded, because clients choose names of models. */
export class Channels {
  readonly #catalog: Pick<Catalog, 'list' | 'targets'>;
  readonly #providers = new Map<string, string>();
  readonly #labels = new Set<string>();
  #listed: ReadonlySet<string> = new Set();
  #readAt = Number.NEGATIVE_INFINITY;

  constructor(catalog: Pick<Catalog, 'list' | 'targets'>) {
    this.#catalog = catalog;
  }

  /** Returns `gen_ai.provider.name` of the channel that answered a model; the id of the channel where its kind is not known any more. */
  provider(channel: string, model: string): string {
    const known = this.#providers.get(channel);
    if (known !== undefined) return known;
    const found = this.#catalog.targets(model).find((target) => target.channel.id === channel);
    if (found === undefined) return channel;
    const name = providerName(found.channel.kind);
    this.#providers.set(channel, name);
    return name;
  }

  /** Returns a model's name for metrics: `other` for what the gateway does not list, and for models beyond the first 200. */
  label(model: string): string {
    if (this.#labels.has(model)) return model;
    if (this.#labels.size >= maxModels || !this.#isListed(model)) return 'other';
    this.#labels.add(model);
    return model;
  }

  #isListed(model: string): boolean {
    const now = performance.now();
    if (now - this.#readAt > freshness) {
      this.#readAt = now;
      this.#listed = new Set(this.#catalog.list().map(({ id }) => id));
    }
    return this.#listed.has(model);
  }
}

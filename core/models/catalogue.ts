/** Reads the catalogue of known models: prices, limits and traits by provider. */
import { readFileSync } from 'node:fs';
import type { Operation } from '../sdk/format.ts';
import type { KnownModel } from '../sdk/channel.ts';
import type { ModelTraits } from '../model/traits.ts';

/** A list of models with their prices and limits, as it is kept in a file. */
export interface ModelList {
  /** Source of the figures. */
  readonly source: string;
  /** The day for which they hold, `YYYY-MM-DD`. */
  readonly date: string;
  /** The terms under which they may be used. */
  readonly licence: string;
  /** Models by provider, as the source names it, and by the provider's own name of the model. */
  readonly models: Readonly<Record<string, Readonly<Record<string, KnownModel>>>>;
}

let read: ModelList | undefined;

/** Returns the catalogue of Sluice, which `sluice models import FILE` generates. Read on first use. */
export function shippedModels(): ModelList {
  read ??= JSON.parse(readFileSync(new URL('catalogue.json', import.meta.url), 'utf8')) as ModelList;
  return read;
}

let published: ReadonlySet<string> | undefined;

/**
 * Returns true for the name of a model that any provider of the list has, in any letter case and behind any path: `moonshotai/kimi-k2-thinking`
 * where the list has `Kimi-K2-Thinking`.
 */
export function isPublished(name: string): boolean {
  published ??= new Set(
    Object.values(shippedModels().models).flatMap((models) => Object.keys(models).map(plainName)),
  );
  return published.has(plainName(name));
}

function plainName(name: string): string {
  return name.slice(name.lastIndexOf('/') + 1).toLowerCase();
}

/** Models of some providers in a list. */
export class KnownModels {
  readonly #models: ModelList['models'];
  readonly #byProvider: readonly Readonly<Record<string, KnownModel>>[];
  /** The day of the list. */
  readonly date: string;

  constructor(providers: readonly string[], { date, models }: ModelList = shippedModels()) {
    this.date = date;
    this.#models = models;
    this.#byProvider = providers
      .map((name) => (Object.hasOwn(models, name) ? models[name] : undefined))
      .filter((own) => own !== undefined);
  }

  /** Finds a model by the provider's name, which may have a prefix: `models/NAME`. */
  find(model: string): KnownModel | undefined {
    const name = model.replace(/^models\//, '');
    const found = this.#byProvider.find((models) => Object.hasOwn(models, name));
    return found?.[name];
  }

  /** Finds a model of any provider of the list, by `PROVIDER/MODEL`: `openai/gpt-4o`. */
  ofProvider(name: string): KnownModel | undefined {
    const [provider = '', ...rest] = name.split('/');
    const models = Object.hasOwn(this.#models, provider) ? this.#models[provider] : undefined;
    const model = rest.join('/');
    return models !== undefined && Object.hasOwn(models, model) ? models[model] : undefined;
  }

  /**
   * Returns the limits of a model, where neither the config nor its channel's kind says any. An output limit that is the whole context is none: the
   * list writes so where nobody knows it.
   */
  static limits({ inputLimit, outputLimit }: KnownModel): Pick<ModelTraits, 'inputLimit' | 'outputLimit'> {
    const isOwn = outputLimit !== undefined && (inputLimit === undefined || outputLimit < inputLimit);
    return {
      ...(inputLimit === undefined ? {} : { inputLimit }),
      ...(isOwn ? { outputLimit } : {}),
    };
  }

  /** Returns the names of the models for chat, retired ones too. */
  chats(): readonly string[] {
    const names = this.#byProvider.flatMap((models) =>
      Object.entries(models).flatMap(([name, { operation = 'chat' }]) =>
        operation === 'chat' ? [name] : [],
      ),
    );
    return [...new Set(names)];
  }

  /** Returns the names of models that are for one of these operations and not retired. */
  names(speaks: { readonly [O in Operation]?: unknown }): readonly string[] {
    return this.#byProvider.flatMap((models) =>
      Object.entries(models)
        .filter(([, { operation = 'chat', retired }]) => speaks[operation] !== undefined && retired !== true)
        .map(([name]) => name),
    );
  }
}

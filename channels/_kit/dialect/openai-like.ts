/** Defines channels for providers of the chat-completions API: a channel file states only how its provider differs. */
import type { ZodObject } from 'zod';
import { matchesName, type ChannelSpec, type ModelTraits, type ChannelParts } from 'sluice';
import { withMessages, type MessagesSide } from './messages-side.ts';
import { openModel } from './open-models.ts';
import {
  bearer,
  httpChannel,
  traitsByModel,
  type HttpProvider,
  type PlainChannelKind,
} from '../http/http-channel.ts';

/** Options of {@link openaiLike}. */
export interface OpenaiLike {
  /** The file's name. */
  readonly name: string;
  /** Up to and including the version: `https://api.example.com/v1`. */
  readonly baseUrl: string;
  /** Models served when the config names none; `*` stands for anything, and `discover` for whatever the provider lists. */
  readonly models: readonly string[] | 'discover';
  /** Default of the option `discover`: request the provider's list of models. Default: false. */
  readonly discover?: boolean;
  /** The provider's names in the list of known models. */
  readonly catalogue?: readonly string[];
  /** Prices of models, by name or pattern, where the catalogue does not know them. */
  readonly prices?: NonNullable<ChannelSpec<ZodObject>['prices']>;
  /** Default: chat completions for chat. */
  readonly speaks?: ChannelParts['speaks'];
  /** Codecs of words of its own, by what they do. Default: none. */
  readonly codecs?: ChannelParts['codecs'];
  /** Objects that the provider keeps, by the format whose API that belongs to. Default: none. */
  readonly keeps?: NonNullable<ChannelParts['keeps']>;
  /** Price of requests in a batch, as a share of their usual price. Default: half. */
  readonly batchShare?: number;
  /** Reads the prices of models from the provider's list. */
  readonly listedPrices?: NonNullable<HttpProvider['listedPrices']>;
  /** Reads the cost of a call that the provider states in its response. */
  readonly statedCost?: NonNullable<HttpProvider['statedCost']>;
  /** Further endpoints of the provider, at other addresses or with other responses. */
  readonly beside?: NonNullable<HttpProvider['beside']>;
  /** Differences of the batch API from that of chat completions. */
  readonly batches?: NonNullable<HttpProvider['batches']>;
  /** Traits by model pattern. All matching patterns apply, later ones override earlier ones. */
  readonly traits?: Readonly<Record<string, ModelTraits>>;
  /** Switch for the reasoning of hybrid open models at this provider. Traits in `traits` override it. */
  readonly openModels?: ModelTraits;
  /** Traits for models that are known to reason only from the catalogue. Default: by an effort. */
  readonly thinking?: ModelTraits;
  /** True when the provider takes messages of the role `developer`. Default: they go as `system`, which all providers take. */
  readonly developerRole?: boolean;
  /** Patterns of the models that take free-text tools; the others get them as functions. Default: none does. */
  readonly customTools?: readonly string[];
  /** False when a key is optional. Default true. */
  readonly needsKey?: boolean;
  /** Headers that carry the key. Default: `authorization: Bearer KEY`. */
  readonly headers?: (key: string | undefined) => Readonly<Record<string, string>>;
  /** Fields of the body by which the provider chooses further models. */
  readonly routingFields?: readonly string[];
  /** The messages format of the provider. Default: it has none. */
  readonly messages?: MessagesSide;
  /** Fields of the body that the provider spells otherwise, or (null) refuses. */
  readonly fields?: Readonly<Record<string, string | null>>;
}

/**
 * Defines a channel kind for one provider.
 *
 * @example
 * export default openaiLike({ name: 'groq', baseUrl: 'https://api.groq.com/openai/v1', models: ['openai/gpt-oss-*'] });
 */
export function openaiLike({
  speaks,
  traits,
  openModels,
  headers,
  customTools = [],
  developerRole = false,
  messages,
  ...rest
}: OpenaiLike): PlainChannelKind {
  const { '*': all = {}, ...some } = traits ?? {};
  const special = traitsByModel(some);
  // LiteLLM 1.110.2, llms/base_llm/chat/transformation.py, `translate_developer_role_to_system_role`: of all but OpenAI.
  const common = developerRole ? all : { systemRole: 'system' as const, ...all };
  const ofModel = (model: string): ModelTraits => ({
    ...common,
    ...(openModels === undefined ? {} : openModel(model, openModels)),
    ...special(model),
  });
  return httpChannel({
    ...rest,
    headers: headers ?? bearer,
    modelList: '/models',
    speaks: speaks ?? { chat: ['chat-completions'] },
    ...(messages === undefined
      ? {}
      : {
          beside: (parts, options, tools) =>
            withMessages(parts, options, tools, { baseUrl: rest.baseUrl, side: messages }),
        }),
    traits(model) {
      const known = ofModel(model);
      if (matchesName(customTools, model)) return known;
      return { ...known, refuses: [...(known.refuses ?? []), 'customTools'] };
    },
  });
}

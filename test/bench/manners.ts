/** How requests of one size differ: in who made their ids, in how their JSON is written, and in how they are sent. */
import type { IdStyle } from './tool-ids.ts';
import { jsonStyles, type JsonStyle } from './json-styles.ts';

/** Style in which a request is written and sent. Absent members are as in {@link simplest}, except that ids are OpenAI's. */
export interface Manner {
  readonly ids?: IdStyle;
  readonly json?: JsonStyle;
  readonly body?: 'gzip' | 'chunked';
  /** Twelve headers more, as browsers, load balancers and tracing add them. */
  readonly moreHeaders?: boolean;
  /** Each call is of a session of its own, whose ids were in no call before. */
  readonly fresh?: boolean;
}

/** Baseline of the other styles of its size. */
export const simplest: Manner = { ids: 'simple' };

/** Makers of ids whose clients speak chat completions. */
const chatIds: readonly IdStyle[] = [
  'openai',
  'anthropic',
  'gemini',
  'kimi',
  'mistral',
  'vllm',
  'ollama',
  'deepseek',
];

/** A kind of requests in the table of varieties. */
export interface Variety {
  readonly name: string;
  readonly title: string;
  readonly manner: Manner;
  readonly limited?: boolean;
  /** Why it may cost more than the simplest. */
  readonly because?: string;
}

const limited: Variety = {
  name: 'limited',
  title: 'key with a budget, rates and a concurrency limit',
  manner: simplest,
  limited: true,
  because: 'tokens are estimated, and rates and budgets reserved and settled, however small the call is',
};

const sentOtherwise: readonly Variety[] = [
  {
    name: 'gzip',
    title: 'compressed body',
    manner: { ...simplest, body: 'gzip' },
    because: 'the body is decompressed',
  },
  { name: 'chunked', title: 'body without a length', manner: { ...simplest, body: 'chunked' } },
  { name: 'headers', title: '12 headers more', manner: { ...simplest, moreHeaders: true } },
];

const writtenOtherwise: readonly Variety[] = jsonStyles
  .filter((json) => json !== 'javascript')
  .map((json) => ({ name: json, title: `JSON of ${json}`, manner: { ...simplest, json } }));

const idsOtherwise: readonly Variety[] = chatIds.map((ids) => ({
  name: ids,
  title: `ids of ${ids}`,
  manner: { ids },
}));

const fresh: Variety = {
  name: 'fresh',
  title: 'a session of its own for each call',
  manner: { ...simplest, fresh: true },
};

/** Of inputs without tool calls. */
export const plainVarieties: readonly Variety[] = [limited, ...writtenOtherwise, ...sentOtherwise];

/** Of sessions with tool calls. */
export const sessionVarieties: readonly Variety[] = [
  limited,
  ...idsOtherwise,
  fresh,
  ...writtenOtherwise,
  ...sentOtherwise,
];

/** Of sessions whose size is to show what grows with it. */
export const longVarieties: readonly Variety[] = [limited, ...idsOtherwise, fresh];

/** Of generateContent clients, which need not send ids. */
export const contentVarieties: readonly Variety[] = [
  limited,
  { name: 'none', title: 'no ids', manner: { ids: 'none' } },
];

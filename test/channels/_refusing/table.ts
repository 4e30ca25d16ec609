import type { Check } from './checks.ts';
import { chinaRules } from './rules-china.ts';
import { claudeRules } from './rules-claude.ts';
import { cloudRules } from './rules-clouds.ts';
import { googleRules } from './rules-google.ts';
import { hostRules } from './rules-hosts.ts';
import { messagesRules } from './rules-messages.ts';
import { openaiRules } from './rules-openai.ts';
import { providerRules } from './rules-providers.ts';
import { servingRules } from './rules-serving.ts';
import { thinkingRules } from './rules-thinking.ts';

/** Rule by which a provider refuses requests, with the source of the rule. */
export interface Rule {
  /** Channel kinds; `*`: every one. */
  readonly kinds: readonly string[];
  /** Patterns of the provider's model names; those with `!` in front are left out. Default: every model. */
  readonly models?: readonly string[];
  /** The formats in which the rule holds. Default: chat completions. */
  readonly wires?: readonly string[];
  readonly refuses: Check;
  /** The provider's sentence; `$` stands for the member that is wrong. */
  readonly says: string;
  /** Default 400. */
  readonly status?: number;
  readonly source: string;
}

/** All rules. The first one that a request breaks is answered. */
export const rules: readonly Rule[] = [
  ...openaiRules,
  ...messagesRules,
  ...claudeRules,
  ...googleRules,
  ...cloudRules,
  ...hostRules,
  ...providerRules,
  ...chinaRules,
  ...servingRules,
  ...thinkingRules,
];
